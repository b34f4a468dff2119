import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type System, systems, thisSystem } from '../../src/base/system.ts';
import { walk } from '../../src/cli/completion/complete.ts';
import { allCommands } from '../../src/cli/output/help.ts';
import { createProgram, runCli as runHere } from '../../src/cli/program.ts';
import { TerminalIo } from '../support/command-io.ts';
import { CliHome, runCli } from '../support/run-cli.ts';

let home: CliHome;
beforeAll(() => {
  home = new CliHome();
});
afterAll(() => home[Symbol.dispose]());

const tree = createProgram({ system: thisSystem } as TerminalIo);
const commands = allCommands(tree).map((command): [string[]] => [pathOf(command)]);

describe('rankd … --help', () => {
  test.each(commands)('for %j has a description and ends with examples of it', async (path) => {
    const io = new TerminalIo(home);
    expect(await runHere([...path, '--help'], io)).toBe(0);
    const [usage = '', examples = ''] = io.out.split('\nExamples:\n');
    expect(usage).toMatch(new RegExp(`^Usage: ${['rankd', ...path].join(' ')}\\b.*\\n\\n\\S`));
    const lines = examples.trimEnd().split('\n');
    for (const line of lines) expect(line).toMatch(/^ {2}\S/);
    expect(lines.some((line) => line.includes(['rankd', ...path].join(' ')))).toBe(true);
  });

  test.each(commands)('for %j has examples with only existing commands, arguments and options', async (path) => {
    const io = new TerminalIo(home);
    await runHere([...path, '--help'], io);
    for (const line of io.out.split('\nExamples:\n')[1]?.trim().split('\n') ?? []) {
      for (const part of line.split(/[|<>]|&&/).filter((text) => /^\s*rankd /.test(text))) {
        const words = part.trim().split(/ +/).slice(1);
        const { unknown, pending, takesCommand } = walk(tree, words);
        expect({ line, unknown, takesCommand }).toEqual({ line, unknown: [], takesCommand: false });
        if (pending !== undefined) expect(pending.variadic, line).toBe(true);
      }
    }
  });
});

test.each(commands)(
  'on Windows, the examples of %j are for PowerShell, and on macOS none is about systemd',
  async (path) => {
    const shown = async (system: System) => {
      const io = new TerminalIo(home, [], system);
      await runHere([...path, '--help'], io);
      return io.out.split('\nExamples:\n')[1] ?? '';
    };
    const [windows, macos] = [await shown(systems.windows), await shown(systems.macos)];
    for (const text of [windows, macos]) expect(text).toContain(['rankd', ...path].join(' '));
    expect(windows).not.toMatch(/'|&&|<|sudo|systemd|\| man|[ =][~/]/);
    expect(macos).not.toMatch(/sudo|systemd|\/var\/lib/);
  },
);

describe('the manual page', () => {
  const page = readFileSync(new URL('../../dist/rankd.1', import.meta.url), 'utf8');

  test('is generated from the commands, and rankd man prints it', async () => {
    const { code, stdout, stderr } = await runCli(['man']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe(page);
    const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(manifest.man).toEqual(['dist/rankd.1']); // npm accepts only a list, and ignores a string
  });

  const groff = spawnSync('groff', ['-man', '-Tutf8', '-ww', '-P-cbou', '-rLL=100n'], {
    input: page,
    encoding: 'utf8',
  });

  test.skipIf(groff.error !== undefined)('is valid roff, and has every command and option', () => {
    expect([groff.status, groff.stderr]).toEqual([0, '']);
    const text = groff.stdout.replaceAll(/\s+/g, ' ');
    for (const command of allCommands(tree).filter(({ commands }) => commands.length === 0)) {
      expect(text).toContain(['rankd', ...pathOf(command)].join(' '));
      for (const { long } of command.options) expect(text).toContain(long);
    }
    expect(text).toContain('EXIT STATUS 0 done, or yes');
  });
});

function pathOf(command: Command): string[] {
  return command.parent === null ? [] : [...pathOf(command.parent), command.name()];
}
