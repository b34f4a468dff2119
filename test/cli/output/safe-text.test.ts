import { expect, test } from 'vitest';
import { csvLine, printable } from '../../../src/cli/output/text.ts';

test.each(['👩‍🚀 Pilot', '👩🏽‍💻', '🏳️‍🌈', '👨‍👩‍👧‍👦', 'Général', 'นาย', '❤️'])('%s is printed unchanged', (text) => {
  expect(printable(text)).toBe(text);
});

test.each(['Adm\u200din', '👩\u200d', '\u200d🚀', 'a\u200d🚀', '👩\u200dx'])(
  'the joiner in %j is replaced, because it does not join emoji',
  (text) => {
    expect(printable(text)).toBe(text.replace('\u200d', '\uFFFD'));
  },
);

test.each([
  ...[
    '\u3164',
    '\u115f',
    '\uffa0',
    '\u2800',
    '\u{e0041}',
    '\u{e0100}',
    '\ufff9',
    '\ufffb',
    '\u034f',
    '\u00ad',
    '\u200b',
    '\ufeff',
  ],
])('the invisible character %j is replaced', (text) => {
  expect(printable(text)).toBe('\uFFFD');
  expect(printable(`a${text}b`)).toBe('a\uFFFDb');
});

test('a character has at most four combining marks', () => {
  expect(
    printable(`a${'\u0301'.repeat(300)}`)
      .normalize('NFC')
      .match(/\u0301/g)?.length ?? 0,
  ).toBeLessThan(5);
});

test.each(['=1+1', ' =1+1', '\u00a0=1+1', '+1', '-1', '@x', '  @x', '\uff1d1+1', ' \uff20x'])(
  'a CSV cell that looks like a formula (%j) becomes text',
  (cell) => expect(csvLine([cell, 'x'])).toBe(`'${cell},x\r\n`),
);
