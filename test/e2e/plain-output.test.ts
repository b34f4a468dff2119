import type { Command } from 'commander';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allCommands } from '../../src/cli/help.ts';
import { createProgram } from '../../src/cli/program.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';
import type { TerminalIo } from '../support/terminal-io.ts';

/** One way to call every command; `serve` is started apart. */
const invocations: Record<string, string[]> = {
  init: ['--group', '4199740', '--credential-file', '/dev/null'],
  'workspace show': [],
  'workspace suspend': ['-y'],
  'workspace resume': [],
  'workspace plan': ['top'],
  'key create': ['other'],
  'key list': [],
  'key show': ['main'],
  'key set': ['main', '--max-rank', '100'],
  'key rotate': ['main'],
  'key revoke': ['main', '-y'],
  'key resume': ['main'],
  'key verify': ['-'],
  'key hash': ['-'],
  'whitelist add': ['42', '--key', 'main'],
  'whitelist list': [],
  'whitelist remove': ['42', '--key', 'main'],
  'whitelist enable': ['43', '--key', 'main'],
  'whitelist disable': ['43', '--key', 'main'],
  'whitelist check': ['43', '--key', 'main'],
  'rank test': ['1001', '20'],
  'rank set': ['1001', '20'],
  'rank promote': ['1002'],
  'rank demote': ['1002'],
  'rank show': ['1001'],
  'group show': [],
  'group roles': [],
  doctor: [],
  'history list': [],
  'history show': ['chg_none'],
  'history export': ['--format', 'jsonl'],
  'history undo': ['--key', 'main', '--since', '1h', '-y'],
  'audit list': [],
  'audit verify': [],
  'config check': [],
  'config show': ['--origin'],
  'config path': [],
  'config schema': [],
  openapi: [],
  reload: [],
  status: [],
  health: [],
  'service print': [],
  'service install': ['--dir', '/dev/null'],
  backup: ['copy.db'],
  restore: ['copy.db', '--dry-run'],
  'db check': [],
  'db migrate': [],
  completion: ['bash'],
  man: [],
  version: [],
};

/** Whatever these ask for: off a terminal nothing is colored or written over. */
const env = { TERM: 'xterm-256color', COLORTERM: 'truecolor', FORCE_COLOR: '3', CLICOLOR_FORCE: '1' };

const control = /(?![\n\t])\p{Cc}/u;

let home: CliHome;

beforeAll(async () => {
  home = new CliHome();
  await home.json('key', 'create', 'main');
  await home.json('whitelist', 'add', '43', '--key', 'main');
});

afterAll(() => home[Symbol.dispose]());

test('every command is called below', () => {
  const leaves = allCommands(createProgram({} as TerminalIo)).filter(({ commands }) => commands.length === 0);
  expect([...Object.keys(invocations), 'serve'].sort()).toEqual(leaves.map(pathOf).sort());
});

test.concurrent.each(Object.entries(invocations))(
  'rankd %s prints no escape byte off a terminal',
  async (path, args) => {
    const { stdout, stderr } = await home.run([...path.split(' '), ...args], { env });
    expect(stdout + stderr).not.toBe('');
    expect(stdout + stderr).not.toMatch(control);
  },
);

test('nor does rankd serve, nor what it logs', async () => {
  using other = new CliHome();
  await using daemon = await DaemonProcess.start(other, { env });
  await fetch(`${daemon.url}/%1B%5B31mred`);
  await daemon.stop();
  expect(daemon.log).not.toBe('');
  expect(daemon.log).not.toMatch(control);
});

/** e.g. `key create`. */
function pathOf(command: Command): string {
  const parent = command.parent;
  return parent === null || parent.parent === null ? command.name() : `${pathOf(parent)} ${command.name()}`;
}
