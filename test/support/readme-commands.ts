import { readFileSync } from 'node:fs';

/** Where the pages' commands expect the daemon. */
export const documentedPort = '7265';

/** The commands to type that a page has below a heading, up to the next one of its level or above, a line each. */
export function pageCommands(page: string, heading: string): string[] {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8');
  const [, section = ''] = `\n${text}`.split(`\n${heading}\n`);
  const [level = ''] = heading.split(' ');
  const [untilNext = ''] = section.split(new RegExp(`^#{1,${level.length}} `, 'm'));
  const blocks = [...untilNext.matchAll(/```sh\n(.+?)```/gs)];
  const commands = blocks.flatMap(([, block = '']) => block.trim().split('\n'));
  if (commands.length === 0) throw new Error(`${page} has no commands below "${heading}"`);
  return commands;
}

/** What a newcomer types one after the other: the way to a first rank change, and the way to a real group. */
export const pagesToType = {
  install: () => pageCommands('README.md', '## Two commands'),
  trial: () => pageCommands('README.md', '## Try it'),
  goLive: () => pageCommands('docs/go-live.md', '# Go live on a real group'),
};
