import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { displayWidth } from '../../src/cli/output/text.ts';
import { BuiltSession } from '../support/built-session.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { everyCommand } from '../support/every-command.ts';
import { runOnTerminal } from '../support/pseudo-terminal.ts';
import { CliHome, type CliResult } from '../support/run-cli.ts';
import { TempDir } from '../support/temp-dir.ts';
import { files, type Line, others, prepared, scenes, shownOnTerminals } from './golden-scenes.ts';

/** These variables request color, but must have no effect without a terminal. */
const env = { TERM: 'xterm-256color', COLORTERM: 'truecolor', FORCE_COLOR: '3', CLICOLOR_FORCE: '1' };

const control = /(?![\n\t])\p{Cc}/u;

const everyLine = [...Object.values(scenes).flat(), ...others];

test('every command is in the golden scenes', () => {
  const lines = everyLine.map((line) => wordsOf(line).join(' '));
  const isCalled = (path: string) => lines.some((line) => `${line} `.startsWith(`${path} `));
  const missing = everyCommand.filter((path) => !isCalled(path));
  expect(missing, 'add a line for each of these to test/e2e/golden-scenes.ts').toEqual([]);
});

describe.concurrent('the built binary, without a terminal', () => {
  test.for(Object.entries(scenes))(
    'prints exactly the recorded output and exit codes of the scene %s',
    async ([name, lines], { expect }) => {
      using home = homeWithFiles();
      await using built = new BuiltSession(home, env);
      let transcript = '';
      for (const line of lines) transcript += shown(line, await run({ home, built }, line), home);
      expect(transcript).not.toMatch(control);
      await expect(transcript).toMatchFileSnapshot(`golden/${name}.txt`);
    },
  );

  test('neither prints nor logs an escape byte as a daemon', async () => {
    using home = new CliHome();
    await using daemon = await DaemonHere.start(home, { env });
    await fetch(`${daemon.url}/%1B%5B31mred`);
    await daemon.stop();
    expect(daemon.log).not.toBe('');
    expect(daemon.log).not.toMatch(control);
  });
});

test('prints no escape byte in longer output', async () => {
  using home = homeWithFiles();
  for (const line of others) {
    const { stdout, stderr } = await home.here(wordsOf(line), { env });
    expect(stdout).not.toBe('');
    expect(stdout + stderr).not.toMatch(control);
  }
});

test('with --json, prints exactly one document for every command, on success and on failure, and does not change rankd.yaml', async () => {
  using home = homeWithFiles();
  const yaml = '# mine  \r\nserver:   {port:   8080}\n\n\nlimits:\n    rank: 0600 # no more\n';
  writeFileSync(home.path('rankd.yaml'), yaml);
  for (const line of everyLine.filter((one) => !/--help|^help|--format/.test(textOf(one)))) {
    const { stdout, stderr } = await home.here([...wordsOf(line), '--json']);
    const printed = stdout + stderr;
    expect(() => JSON.parse(printed), `rankd ${textOf(line)} --json: ${printed}`).not.toThrow();
    if (!/schema|openapi/.test(textOf(line))) expect(JSON.parse(printed), textOf(line)).toMatchObject({ v: 1 });
  }
  expect(readFileSync(home.path('rankd.yaml'), 'utf8')).toBe(yaml);
});

describe('the built binary, on a terminal', () => {
  let home: CliHome;
  let daemon: DaemonProcess;

  beforeAll(async () => {
    // The path is short, because its length affects column widths.
    home = new CliHome(new TempDir(mkdtempSync('/tmp/rankd-test-')));
    const secret = await home.createKey('main');
    for (const line of prepared) await home.here(line);
    daemon = await DaemonProcess.start(home);
    await daemon.rank(secret, { newRankId: 50 });
    // the daemon looks up members' names in the background
    await vi.waitFor(
      async () => expect(JSON.stringify(await home.json('history', 'list'))).toContain('"userName":"Newcomer"'),
      20_000,
    );
  });

  afterAll(async () => {
    await daemon.stop();
    home[Symbol.dispose]();
  });

  test.concurrent.for<[number, Record<string, string>]>([
    [80, {}],
    [140, { NO_COLOR: '1' }],
  ])(
    'of %i columns, prints tables that fit, with local times, and colors unless NO_COLOR is set',
    async ([columns, env], { expect }) => {
      const screens = shownOnTerminals.map(async (line) => {
        const args = line.split(' ');
        const { screen } = await runOnTerminal(home, args, { columns, env: { TZ: aroundNoon(), ...env } });
        for (const text of screen.replaceAll(colors, '').split('\n'))
          expect(displayWidth(text), text).toBeLessThanOrEqual(columns);
        return `$ rankd ${line}\n${settledScreen(screen, home)}\n`;
      });
      await expect((await Promise.all(screens)).join('')).toMatchFileSnapshot(`golden/terminal-${columns}.txt`);
    },
  );
});

const colors = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g');

/** Progress messages appear only on slow machines. */
const overwritten = new RegExp(`[^\\n]*\\r${String.fromCharCode(27)}\\[K`, 'g');

/** Returns a time zone in which it is about noon, so that the date does not change during the test. */
function aroundNoon(): string {
  const west = new Date().getUTCHours() - 12;
  return `Etc/GMT${west < 0 ? west : `+${west}`}`;
}

/** Replaces color codes with the colors' names, calls `settled` for each line, and hides a running daemon's figures. */
function settledScreen(screen: string, home: CliHome): string {
  const named = screen.replaceAll(
    colors,
    (code) => ({ 31: '<red>', 32: '<green>', 33: '<yellow>' })[code.slice(2, -1)] ?? '',
  );
  // Line by line, because `settled` may collapse all spaces in its argument.
  const lines = named.split('\n').map((line) => settled(line, home));
  return lines
    .join('\n')
    .replaceAll(overwritten, '')
    .replaceAll(/\b(today|tomorrow) \d\d:\d\d/g, '$1 12:00')
    .replaceAll(/^((?:pid|uptime|disk) +).*/gm, '$1…')
    .replaceAll(/\b\d+ MiB|\b(?:process|pid) \d+/g, '…')
    .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST:PORT');
}

function homeWithFiles(): CliHome {
  const home = new CliHome();
  for (const [name, content] of Object.entries(files)) writeFileSync(home.path(name), content);
  return home;
}

/** The first line of each command runs in the built binary, all others in this process. */
const linesOfBuild = new Set([
  ...new Map(
    Object.values(scenes)
      .flat()
      .toReversed()
      .map((line) => [commandOf(line), line]),
  ).values(),
]);

function run({ home, built }: { home: CliHome; built: BuiltSession }, line: Line): Promise<CliResult> {
  const options = { env, input: typeof line === 'string' ? '' : line.input };
  if (!linesOfBuild.has(line)) return home.here(wordsOf(line), options);
  return options.input === '' ? built.run(wordsOf(line)) : home.run(wordsOf(line), options);
}

function commandOf(line: Line): string {
  const text = wordsOf(line).join(' ');
  return everyCommand.find((path) => `${text} `.startsWith(`${path} `)) ?? text;
}

function shown(line: Line, { code, stdout, stderr }: CliResult, home: CliHome): string {
  const marked = stderr.replaceAll(/^/gm, '! ').replace(/! $/, '');
  const [out, err] = [stdout, marked].map((text) => settled(text.replaceAll('@test', `@${hostname()}`), home));
  return `$ rankd ${textOf(line)}\n${out}${err}[${code}]\n\n`;
}

/** Replaces values that differ between runs, if possible with ones of the same length, so that columns stay aligned. */
function settled(text: string, { folder }: CliHome): string {
  const sameLength = text
    .replaceAll(/\brk_(live|test)_[0-9A-Za-z]{36}\b/g, (_, mode) => `rk_${mode}_${'x'.repeat(36)}`)
    .replaceAll(/\brk_(live|test)_\w{3}…\w{3}\b/g, (_, mode) => `rk_${mode}_xxx…xxx`)
    .replaceAll(/\b[0-9a-f]{64}\b/g, 'f'.repeat(64))
    .replaceAll(/\b(key|chg|ws|undo|req|hold|wh|list)_[0-9A-Za-z]{12,16}\b/g, (found, kind) =>
      `${kind}_`.padEnd(found.length, 'x'),
    )
    .replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '2026-05-01T18:00:00.000Z')
    .replaceAll(/\b\d{4}-\d\d-\d\d \d\d:\d\d UTC/g, '2026-05-01 18:00 UTC');
  const anyLength = sameLength
    .replaceAll(/(before-restore-)\w+/g, '$1TIME')
    .replaceAll(/\b(bytes +)?\d{5,}( bytes)?\b/g, (found, before, after) =>
      before || after ? `${before ?? ''}SIZE${after ?? ''}` : found,
    )
    .replaceAll(folder, 'HOME')
    .replaceAll(process.versions.node, 'NODE')
    .replaceAll(new RegExp(`cli:\\S+@${hostname()}`, 'g'), 'OPERATOR')
    .replaceAll(new RegExp(`\\S+@${hostname()}`, 'g'), 'WHO');
  return anyLength === sameLength ? anyLength : anyLength.replaceAll(/ {2,}/g, '  ');
}

function textOf(line: Line): string {
  return typeof line === 'string' ? line : line.line;
}

function wordsOf(line: Line): string[] {
  return textOf(line).split(' ').filter(Boolean);
}
