import { expect, test } from 'vitest';
import { unplainComments } from '../tools/plain-comments.ts';

const comments: Array<[place: string, source: string, found: string[]]> = [
  ['after code', 'const port = 1; // so that it is free', ['1: so that it is free']],
  ['on a line of its own', '// Whoever asks.\nconst port = 1;', ['1: Whoever asks.']],
  ['in a block', '/**\n * What is left.\n */', ['2: What is left.']],
  ['in JSX', '  {/* Who is there. */}', ['1: Who is there. */}']],
  ['in a style sheet', 'a { color: red; /* that of the text */ }', ['1: that of the text */ }']],
  ['in Luau', '\t--- What is sent.\n--[[\n\tSo it is.\n]]', ['1: What is sent.', '3: So it is.']],
  ['further down in a comment', '// The port, which is the one\n// that the system chose.', []],
  ['with a longer word', '// Sockets, whose peer is gone.\n/* Whole numbers. */', []],
];

test.each(comments)(
  'a comment %s is rejected only if it begins with What, Who, Whoever, So or That',
  (_place, source, found) => {
    expect(unplainComments(source)).toEqual(found);
  },
);
