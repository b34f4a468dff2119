import { type Document, isNode, LineCounter, parseDocument } from 'yaml';
import type * as z from 'zod';
import { codeOf, RankdError } from '../base/errors.ts';
import { readAtMost } from '../base/read-file.ts';
import { groupDescription } from './group-description.ts';
import { toSeed } from './group-seed.ts';
import type { GroupSeed } from './simulated-group.ts';

interface Problem {
  path: Array<string | number>;
  what: string;
}

/**
 * Reads a simulated group from a YAML file. Throws `config_invalid` if the file cannot be read or is invalid; the error
 * lists each problem with its `file:line:column`.
 */
export function loadGroupFile(file: string): GroupSeed {
  const lines = new LineCounter();
  const document = parseDocument(read(file), { lineCounter: lines, prettyErrors: false });
  const withLocation = ({ offset, what }: { offset: number; what: string }) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col} ${what}`;
  };
  if (document.errors.length > 0) {
    throw invalid(document.errors.map(({ pos, message }) => withLocation({ offset: pos[0], what: message })));
  }
  const { seed, problems } = check(plain(document, file));
  if (seed !== undefined && problems.length === 0) return seed;
  const located = problems.map(({ path, what }) => ({
    offset: offsetOf(document, path),
    what: `${dotted(path)} ${what}`,
  }));
  throw invalid(located.sort((a, b) => a.offset - b.offset).map(withLocation));
}

function read(file: string): string {
  try {
    return readAtMost(file, 10_000_000).toString();
  } catch (cause) {
    throw new RankdError('config_invalid', `The group file ${file} cannot be read (${codeOf(cause)}).`, {
      cause,
      hint: 'check its path, and that the user running rankd can read it',
    });
  }
}

/**
 * Converts the document to plain data. Only this step detects aliases without an anchor and aliases that expand to too
 * much data.
 */
function plain(document: Document, file: string): unknown {
  try {
    return document.toJS();
  } catch (cause) {
    throw invalid([`${file}:1:1 ${cause instanceof Error ? cause.message : 'is not YAML'}`]);
  }
}

function check(data: unknown): { seed?: GroupSeed; problems: Problem[] } {
  const parsed = groupDescription.safeParse(data);
  if (!parsed.success) return { problems: parsed.error.issues.flatMap(problemsOf) };
  const problems: Problem[] = [];
  const seed = toSeed(parsed.data, (path, what) => problems.push({ path, what }));
  return { seed, problems };
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  const path = issue.path.filter((step) => typeof step !== 'symbol');
  if (issue.code !== 'unrecognized_keys') return [{ path, what: issue.message }];
  return issue.keys.map((key) => ({ path: [...path, key], what: 'is not a setting of a group file' }));
}

function invalid(problems: string[]): RankdError {
  const [only] = problems;
  const what =
    problems.length === 1
      ? `The group file is not valid: ${only}`
      : `The group file has ${problems.length} problems:\n  ${problems.join('\n  ')}`;
  return new RankdError('config_invalid', what, {
    hint: `correct it; a group file has ${fields.join(', ')}: see docs/settings.md`,
  });
}

const fields = Object.keys(groupDescription.shape);

/** Returns the offset of the value at `path`, or of its nearest ancestor if the document does not contain it. */
function offsetOf(document: Document, path: Problem['path']): number {
  for (let length = path.length; length > 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
}

/** e.g. `members[2].roles[0]`. */
function dotted(path: Problem['path']): string {
  return (
    path
      .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
      .join('')
      .replace(/^\./, '') || 'the file'
  );
}
