import { settings } from './settings.ts';

/** A value for a setting, with a comment for whoever reads the file. */
export interface Chosen {
  value: string | number | number[];
  note?: string;
}

/** A `rankd.yaml` with these settings, by path. All others are comments with their defaults, below their descriptions. */
export function renderYaml(chosen: ReadonlyMap<string, Chosen>): string {
  let section: string[] = [];
  const lines = settings.flatMap(({ path, description, default: preset }) => {
    const parents = path.split('.').slice(0, -1);
    const opened = parents.length === 0 ? [''] : headings(parents, section);
    section = parents;
    return [...opened, ...entry(path, description, chosen.get(path) ?? { value: preset, isOff: true })];
  });
  return `${heading}\n${lines.join('\n')}\n`;
}

const heading = `# The configuration of rankd. A setting behind a # has its default; delete the # and change it.
# Check it with: rankd config check
`;

/** The headings of the sections that begin here, a line for each level. */
function headings(parents: string[], before: string[]): string[] {
  const isSame = (depth: number) => parents.slice(0, depth + 1).join('.') === before.slice(0, depth + 1).join('.');
  return parents.flatMap((name, depth) => {
    if (isSame(depth)) return [];
    return [...(depth === 0 && before.length > 0 ? [''] : []), `${indent(depth)}${name}:`];
  });
}

function entry(
  path: string,
  description: string,
  { value, note, isOff }: { value: unknown; note?: string; isOff?: boolean },
): string[] {
  const segments = path.split('.');
  const lead = indent(segments.length - 1);
  const text = value === undefined ? '' : ` ${scalar(value)}`;
  return [
    `${lead}# ${description}`,
    `${lead}${isOff ? '#' : ''}${segments.at(-1)}:${text}${note === undefined ? '' : `  # ${oneLine(note)}`}`,
  ];
}

function scalar(value: unknown): string {
  if (Array.isArray(value)) return `[${value.join(', ')}]`;
  const isPlain = typeof value !== 'string' || /^[\w./][\w./:-]*$/.test(value);
  return isPlain ? String(value) : JSON.stringify(value);
}

/** Anybody can choose the names of groups and roles. */
function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, ' ');
}

function indent(depth: number): string {
  return '  '.repeat(depth);
}
