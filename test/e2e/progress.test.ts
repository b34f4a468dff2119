import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Cli } from '../../src/cli/cli.ts';
import { whileStreaming, whileWaiting } from '../../src/cli/output/terminal.ts';
import { runCli } from '../../src/cli/program.ts';
import { TerminalIo } from '../support/command-io.ts';
import { type FakeOpenCloud, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { CliHome } from '../support/run-cli.ts';

const eraseLine = '\r\u001b[K';

let roblox: FakeOpenCloud;
let home: CliHome;
let env: Record<string, string>;

beforeAll(async () => {
  roblox = await startFakeOpenCloud({ latencyMs: 600 });
  home = new CliHome();
  await home.run(['workspace', 'show']); // creates the database, which the first command would otherwise mention
  env = {
    RANKD_GROUP_ID: String(roblox.groupId),
    RANKD_PLATFORM_API_KEY: roblox.apiKey,
    RANKD_PLATFORM_BASE_URL: roblox.baseUrl,
    RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl,
  };
});

afterAll(async () => {
  await roblox.close();
  home[Symbol.dispose]();
});

async function onTerminal(args: string[], more: Record<string, string> = {}): Promise<TerminalIo> {
  const io = new TerminalIo(home);
  Object.assign(io.env, env, more);
  expect(await runCli(args, io)).toBe(0);
  return io;
}

describe('a command that waits for Roblox', () => {
  test.concurrent('shows a progress line on a terminal, and removes it before the result', async () => {
    const { out, err } = await onTerminal(['group', 'show'], { NO_COLOR: '1' });
    const [before, ...lines] = err.split(eraseLine);
    expect([before, lines.pop()]).toEqual(['', '']);
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/^waiting for Roblox, \d+ s$/);
    expect(out).toContain('acting');
    expect(out).not.toContain('\u001b');
  });

  test.concurrent.each<[string, string[], Record<string, string>]>([
    ['with -q', ['-q'], {}],
    ['with --json', ['--json'], {}],
    ['on a terminal that cannot erase', [], { TERM: 'dumb' }],
  ])('%s shows no progress', async (_name, flags, more) => {
    expect((await onTerminal(['group', 'show', ...flags], more)).err).toBe('');
  });

  test.concurrent('shows no progress without a terminal', async () => {
    expect(await home.run(['group', 'show'], { env })).toMatchObject({ code: 0, stderr: '' });
  });
});

const onlyShown = { line: [], run: async () => 0 };

test('a progress line does not overwrite a question on the terminal', async () => {
  const io = new TerminalIo(home);
  io.ask = async (question) => {
    io.err += question;
    await delay(1_500);
    return 'y';
  };
  const cli = new Cli(io, new Command(), onlyShown);
  await whileWaiting(cli.line, 'waiting', () => cli.ask('Sure? '));
  expect(io.err).toBe('Sure? ');
});

test('copying the database is announced first, because it blocks all other output', async () => {
  await onTerminal(['key', 'create', 'lobby']);
  const { err } = await onTerminal(['backup', 'copy.db']);
  expect(err.split(eraseLine).slice(0, 2)).toEqual(['', 'copying the database …']);
});

test('progress is shown for results that go into a file, not for those on a screen', async () => {
  const io = new TerminalIo(home);
  const { line } = new Cli(io, new Command(), onlyShown);
  await whileStreaming({ io: { stdoutIsTerminal: true }, line }, 'exporting', () => delay(1_500));
  expect(io.err).toBe('');
  await whileStreaming({ io: { stdoutIsTerminal: false }, line }, 'exporting', () => delay(1_500));
  expect(io.err).toContain('exporting, 1 s');
});
