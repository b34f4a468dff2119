import { expect, test } from 'vitest';
import { printable } from '../../../src/cli/output/text.ts';

test.each(['👩‍🚀 Pilot', '👩🏽‍💻', '🏳️‍🌈', '👨‍👩‍👧‍👦', 'Général', 'นาย', '❤️'])('%s is shown as it is', (text) => {
  expect(printable(text)).toBe(text);
});

test.each(['Adm\u200din', '👩\u200d', '\u200d🚀', 'a\u200d🚀', '👩\u200dx'])(
  'in %j the joiner joins no emoji, and is shown',
  (text) => {
    expect(printable(text)).toBe(text.replace('\u200d', '\uFFFD'));
  },
);
