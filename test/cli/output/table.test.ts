import { expect, test } from 'vitest';
import { displayWidth, table } from '../../../src/cli/output/table.ts';

test.each([
  ['Officer', 7],
  ['', 0],
  ['rk_live_abc…xyz', 15],
  ['Général', 7],
  ['Ge\u0301ne\u0301ral', 7], // the same with combining accents
  ['船長', 4],
  ['ｶﾅ', 2], // half-width
  ['Ａ１', 4], // full-width
  ['대장', 4],
  ['\u1112\u1161\u11ab', 2], // one syllable of Hangul, in three parts
  ['👑', 2],
  ['👩‍🚀 Pilot', 8], // a woman and a rocket, joined
  ['👨‍👩‍👧‍👦', 2],
  ['❤️', 2],
  ['❤', 1],
  ['🇫🇷', 2],
  ['1️⃣', 2],
  ['👍🏽', 2],
  ['นาย', 3],
  ['ที่', 1], // with two marks above
  ['Командир', 8],
  ['\u{20000}', 2],
])('%j takes %i columns', (text, columns) => {
  expect(displayWidth(text)).toBe(columns);
});

test('columns are aligned, whatever script the names are in', () => {
  const rows = [
    ['船長', '255'],
    ['👩‍🚀 Pilot', '20'],
    ['Ge\u0301ne\u0301ral', '10'],
    ['Member', '1'],
  ];
  expect(table(['role', 'rank'], rows).split('\n')).toEqual([
    'ROLE      RANK',
    '船長      255',
    '👩‍🚀 Pilot  20',
    'Ge\u0301ne\u0301ral   10',
    'Member    1',
  ]);
});
