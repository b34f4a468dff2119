import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** `npm run lint`: lists comments that begin with a clause without an actor (`opening`), and fails if there are any. */
const root = fileURLToPath(new URL('../..', import.meta.url));
const opening = /^(what|who|whoever|so|that)\b/i;

/** Returns the comments that begin with one of these words, as `line: text`. */
export function unplainComments(source: string): string[] {
  const lines = source.split('\n');
  return lines.flatMap((line, index) => {
    const text = commentIn(line, lines[index - 1]) ?? '';
    return opening.test(text) ? [`${index + 1}: ${text}`] : [];
  });
}

const lineComment = /^\s*(\/\/+|--+(?!\[))\s*/;
const blockStart = /^\s*(\{?\/\*+|--\[\[)\s*$/;
const afterCode = /^(?:[^'"`]|'[^']*'|"[^"]*"|`[^`]*`)*?\s(?:\/\/|\/\*|--) (.*)$/;

/** Returns the first line of the comment that begins on this line, if any. */
function commentIn(line: string, before = ''): string | undefined {
  if (blockStart.test(before)) return line.replace(/^[\s*]+/, '');
  if (lineComment.test(line)) return lineComment.test(before) ? undefined : line.replace(lineComment, '');
  return /^\s*\{?\/\*+\s*(.*)$/.exec(line)?.[1] ?? afterCode.exec(line)?.[1];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const tracked = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.js', '*.css', '*.luau'], { cwd: root });
  for (const file of tracked.toString().trim().split('\n')) {
    for (const found of unplainComments(readFileSync(root + file, 'utf8'))) {
      process.stderr.write(`${file}:${found}\n`);
      process.exitCode = 1;
    }
  }
}
