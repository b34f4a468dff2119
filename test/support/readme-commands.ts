import { readFileSync } from 'node:fs';

/** Where README's commands expect the daemon. */
export const documentedPort = '7265';

/** The commands to type that README has below a heading, a line each. */
export function readmeCommands(heading: string): string[] {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const [, section = ''] = readme.split(`\n${heading}\n`);
  const [untilNext = ''] = section.split(/^## /m);
  const blocks = [...untilNext.matchAll(/```sh\n(.+?)```/gs)];
  const commands = blocks.flatMap(([, block = '']) => block.trim().split('\n'));
  if (commands.length === 0) throw new Error(`README has no commands below "${heading}"`);
  return commands;
}
