import { readdirSync, readFileSync } from 'node:fs';

export const documentedPort = '7265';

const root = new URL('../../', import.meta.url);
const read = (page: string) => readFileSync(new URL(page, root), 'utf8');

export const pages: readonly string[] = [
  ...['README.md', 'CONTRIBUTING.md', 'AGENTS.md', 'SECURITY.md', 'bench/README.md', 'test/support/README.md'],
  ...['docs', 'docs/commands'].flatMap((folder) => {
    const names = readdirSync(new URL(folder, root));
    return names.flatMap((name) => (name.endsWith('.md') ? [`${folder}/${name}`] : []));
  }),
];

export function blocksOf(page: string, language: string): string[] {
  return [...read(page).matchAll(/^```(\w*)\n(.+?)^```$/gms)].flatMap(([, name, text = '']) =>
    name === language ? [text] : [],
  );
}

/** Returns each use of rankd in a page's shell blocks and inline code: the whole line, and the words after `rankd`. */
export function rankdLines(page: string): Array<{ line: string; words: string[] }> {
  const code = [...read(page).matchAll(/^```(?:sh|powershell|cron)\n(.+?)^```$|^```.+?^```$|`([^`\n]+)`/gms)];
  const lines = code
    .flatMap(([, block, span]) => commandLines(block ?? span ?? ''))
    .map((line) => line.replace(/ # .*/, '').replaceAll(/\$\(.*?\)|".*?"/g, 'X'));
  return lines.flatMap((line) =>
    [...line.matchAll(/(?<![\w./@=-]|-u )rankd (?=[a-z-])([^|&;<>`]*)/g)].map(([, rest = '']) => ({
      line,
      words: rest
        .replace(/^rankd /, '')
        .trim()
        .split(/ +/)
        .filter((word) => !/^\[|^…$/.test(word)),
    })),
  );
}

/** Returns the commands below a heading, up to the next heading of the same or a higher level. */
function pageCommands(page: string, heading: string): string[] {
  const [, section = ''] = `\n${read(page)}`.split(`\n${heading}\n`);
  const [level = ''] = heading.split(' ');
  const [untilNext = ''] = section.split(new RegExp(`^#{1,${level.length}} `, 'm'));
  const blocks = [...untilNext.matchAll(/```sh\n(.+?)```/gs)];
  const commands = blocks.flatMap(([, block = '']) => commandLines(block.trim()));
  if (commands.length === 0) throw new Error(`${page} has no commands below "${heading}"`);
  return commands;
}

/** Splits a block into command lines, and joins those that a backslash continues. */
function commandLines(block: string): string[] {
  return block.replaceAll(/ \\\n */g, ' ').split('\n');
}

/** Each function returns the commands of a section of a page, in order. */
export const pagesToType = {
  install: () => pageCommands('README.md', '## Install'),
  check: () => pageCommands('README.md', '## Contributing'),
  trial: () => pageCommands('README.md', '## Three commands'),
  goLive: () => pageCommands('docs/go-live.md', '# Go live on a real group'),
  promotion: () => pageCommands('docs/daily.md', '## Promote a member'),
  training: () => pageCommands('docs/daily.md', '## Promote a list after a training'),
  whoDidThat: () => pageCommands('docs/daily.md', '## Who changed a rank?'),
  suspension: () => pageCommands('docs/daily.md', '## Suspend a member for a few days'),
  backup: () => pageCommands('docs/daily.md', '## Backup'),
  leak: () => pageCommands('docs/daily.md', '## When a key leaks'),
  systemd: () => pageCommands('docs/hosting.md', '## Linux (systemd)'),
  launchd: () => pageCommands('docs/hosting.md', '## macOS'),
  update: () => pageCommands('docs/hosting.md', '## A newer version'),
  removal: () => pageCommands('docs/hosting.md', '## Remove it'),
  secondGroup: () => pageCommands('docs/hosting.md', '## Two groups on one machine'),
  lookUp: () => pageCommands('docs/troubleshooting.md', '# If it does not work'),
  declaredKey: () => pageCommands('docs/settings.md', '## Keys in the file'),
};
