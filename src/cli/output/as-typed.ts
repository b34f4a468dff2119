import type { Command } from 'commander';

/**
 * The commands in a text (`rankd key list`) as they are typed where this one was: what `npx` started is not on the shell's
 * path. npm tells what it starts which of its own commands it runs.
 */
export function asTyped(text: string, program: Command, { npm_command }: Record<string, string | undefined>): string {
  if (npm_command !== 'exec') return text;
  const names = program.commands.map((command) => command.name()).join('|');
  return text.replaceAll(new RegExp(`\\brankd (?=(?:${names})\\b|--|\\[)`, 'g'), 'npx rankd ');
}
