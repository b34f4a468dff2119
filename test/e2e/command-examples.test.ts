import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { systems } from '../../src/base/system.ts';
import { allCommands, examplesOf } from '../../src/cli/output/help.ts';
import { createProgram, runCli } from '../../src/cli/program.ts';
import { TerminalIo } from '../support/command-io.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { discordPublicKey as publicKey } from '../support/discord-interactions.ts';
import { startFakeDiscord } from '../support/fake-discord.ts';
import { startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { createPostgresDatabase } from '../support/postgres-database.ts';
import { binary, CliHome } from '../support/run-cli.ts';
import { startWebhookSink } from '../support/webhook-sink.ts';

const program = createProgram({ system: systems.linux, stdout: () => undefined } as unknown as TerminalIo);
/** The examples in all help texts. test/docs/reference.test.ts ensures that docs/commands has the same ones. */
const examples = [...new Set(allCommands(program).flatMap(examplesOf))];

/** Examples that can't exit with 0 in a test, each with the reason and the expected output. */
const otherOutcomes: Record<string, { reason: string; code: number; says: RegExp }> = {
  'rankd doctor --url https://rankd.example.com': {
    reason: 'the address does not exist; test/e2e/doctor-address.test.ts has real servers',
    code: 5,
    says: /^FAIL +reach +https:.+ can't be reached from here/m,
  },
  'rankd doctor --live --report report.txt': {
    reason: 'it needs a real group; test/e2e/doctor-live.test.ts has one',
    code: 2,
    says: /^error: --live checks the real Roblox, but the configured group is simulated\.\ntry: rankd init$/m,
  },
  'rankd whitelist add --experience 3145678901': {
    reason: 'it needs Roblox; test/e2e/whitelist.test.ts has an experience',
    code: 5,
    says: /^error: A simulated group has no experiences\.\ntry: rankd whitelist add PLACE$/m,
  },
  'rankd webhook redeliver my-bot --failed': {
    reason: 'no delivery has failed; test/webhooks has failures',
    code: 3,
    says: /^error: The webhook my-bot has no such event to redeliver\.\ntry: rankd webhook deliveries my-bot$/m,
  },
  'rankd reload --node east-1': {
    reason: 'it needs several daemons; test/e2e/nodes.test.ts has some',
    code: 2,
    says: /^error: --node is for daemons that share a PostgreSQL database; this data directory has only one daemon\.$/m,
  },
  ...Object.fromEntries(
    ['rankd store accept', 'rankd store accept -y --json'].map((example) => [
      example,
      {
        reason: 'it needs PostgreSQL; test/stores/postgres/known-cluster.test.ts has a second cluster',
        code: 2,
        says: /only a PostgreSQL server has to be accepted/,
      },
    ]),
  ),
  'rankd status --watch': { reason: 'Ctrl-C ends it', code: 130, says: /state +running/ },
};

const before: Array<[examples: RegExp, lines: string[]]> = [
  [/--if-rank Trainee/, ['rank set 1001 Trainee']],
  [/^rankd role remove/, ['role add 1001 Recruit']],
  [/^rankd suspension (show|extend) 1001|^rankd rank unsuspend/, ['rank suspend 1001 --for 1d']],
  [/^rankd discord unlink/, ['discord link 4400000000000000005 1001']],
  [/^rankd webhook add/, ['webhook remove staff-log -y', 'webhook remove my-bot -y']],
  [/^rankd store copy --from rankd-backup/, ['backup rankd-backup.db']],
  [/^rankd restore|rankd restore -y -$/, ['backup rankd-backup.db', 'backup backup.db']],
  [/^sudo rankd service remove/, ['service install --dir HERE/units']],
];

const inNewHome = /^rankd (init|key create my-game|key hash --new)/;
/**
 * Matches examples that can share one home and a running daemon, because they do not affect each other. Every other
 * example, and each one that `before` or `inNewHome` matches, gets its own home, without a daemon.
 */
const besideDaemon =
  / (list|show|test|check|verify|hash -|export|print|path|schema|doctor|openapi|man|version|status|health|dashboard|reload|completion)\b|--dry-run|^HEALTHCHECK|^rankd script/;
const untilStopped = /^rankd serve|--(watch|follow)$/;

/** Replacements for programs that the test machine may lack, or that would change it. */
const programs = {
  sudo: 'exec "$@"',
  ssh: 'exec sh -c "$2"',
  man: 'exec grep -c "^[.]TH RANKD"',
  'systemd-analyze': 'test -s "$2"',
  systemctl: 'true',
  'systemd-sysusers': 'true',
  'xdg-open': 'true',
};

const home = new CliHome();
const prepared = new CliHome();
const servers = new AsyncDisposableStack();
let daemon: DaemonHere;
let env: Record<string, string>;
let robloxKey: string;
/** The answers to an example's questions. The default is `y`. */
let promptAnswers: Array<[examples: RegExp, answers: string[]]>;
/** Replaces the ids, dates, paths and other values in examples with ones that exist here. */
let substitutions: Array<[named: RegExp, here: (folder: string) => string]>;

beforeAll(async () => {
  const channel = servers.use(await startFakeDiscord());
  const sink = servers.use(await startWebhookSink());
  const roblox = await startFakeOpenCloud({ groupId: 4199740 });
  servers.defer(() => roblox.close());
  robloxKey = roblox.apiKey;
  promptAnswers = [
    [/^rankd init$/, ['4199740', robloxKey, '', 'y', '', '920587237', 'rankd.example.com', '', '', 'n']],
    [/^rankd init --group/, ['', 'y', '', '920587237', 'rankd.example.com', '', '', 'n']],
    [/ webhook add [\w-]+$/, [sink.url]],
    [/ discord setup$/, [channel.discord.botToken]],
  ];
  env = {
    PATH: [join(home.folder, 'programs'), dirname(binary), process.env['PATH']].join(':'),
    PROFILE: 'profile.ps1',
    NO_COLOR: '1',
    RANKD_SERVER_PORT: '0',
    RANKD_WEBHOOKS_ALLOW_PRIVATE: '127.0.0.1',
    RANKD_PLATFORM_BASE_URL: roblox.baseUrl,
    RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl,
  };
  const settings = `platform: { kind: simulated }
group: { ladder: [Trainee, Officer, Captain] }
server: { public_url: "https://rankd.example.com" }
audit: { head_file: audit.heads }
dashboard: { enabled: true, port: 0 }
discord:
  application: "1100000000000000001"
  public_key: "${publicKey}"
  server: "2200000000000000002"
  commands: [{ role: "3300000000000000003", key: hr }]
  api_base_url: ${channel.apiBaseUrl}
`;
  const files = {
    'work/rankd.yaml': settings,
    'etc/rankd/rankd.yaml': settings,
    'work/roblox.key': roblox.apiKey,
    'work/places.txt': '920587237\n',
    'work/passed.txt': '1001\n1004\n',
    'work/names.txt': 'Newcomer # trained\n1006\n',
    'work/buyers.txt': '1001\n1004\n',
    'work/refunds.txt': '1001\n',
    'work/discord.url': channel.address,
    'work/bot.token': channel.discord.botToken,
    'work/bot.url': sink.url,
  };
  for (const folder of ['etc/rankd', 'mnt/usb', 'man1', 'work/units', 'programs'])
    mkdirSync(join(home.folder, folder), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home.folder, name), text, { mode: 0o600 });
  for (const [name, text] of Object.entries(programs))
    writeFileSync(join(home.folder, 'programs', name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  for (const line of [
    'key create my-game --out my-game.key',
    'key create hr --for-discord',
    'whitelist add 920587237 1 --key my-game',
    'webhook add staff-log --url-file discord.url --kind discord',
    'webhook add my-bot --url-file bot.url --out made.secret',
  ])
    await runSetup(home, line);
  {
    await using first = await DaemonHere.start(home, { env });
    const secret = readFileSync(home.path('my-game.key'), 'utf8').trim();
    for (const rankeeId of [1001, 1008])
      expect((await first.rank(secret, { rankerId: 1003, rankeeId })).status).toBe(200);
    await runSetup(home, 'rank suspend 1005 --for 3d');
    await vi.waitUntil(async () => (await delivered()).length > 0, { timeout: 20_000 });
    await first.stop();
  }
  const json = async <T>(...args: string[]) => await home.json<T>(...args);
  const { changes } = await json<{ changes: Array<{ id: string }> }>('history', 'list', '--user', '1008');
  const change = changes[0]?.id ?? '';
  const { undo } = await json<{ undo: { id: string } }>('history', 'undo', change, '-y');
  const { suspensions } = await json<{ suspensions: Array<{ id: string }> }>('suspension', 'list');
  const { head } = await json<{ head: string }>('audit', 'verify');
  const [event] = await delivered();
  const roles = await json<{ roles: Array<{ id: number; name: string }> }>('group', 'roles');
  const newDatabase = async () => (await createPostgresDatabase('empty')).url;
  const [filled, ...empty] = await Promise.all([newDatabase(), newDatabase(), newDatabase()]);
  await runSetup(home, `store copy --from ${home.dataDir} --to ${filled}`);
  const from = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  substitutions = [
    [/chg_VbflntX4kQ2mX7Lp/, () => change],
    [/undo_0aB1cD2eF3gH/, () => undo.id],
    [/hold_4Jk2mQ/, () => suspensions[0]?.id ?? ''],
    [/4f1c…/, () => head],
    [/3f2a…/, () => publicKey],
    [/\b4711\b/, () => String(event)],
    [/\b12884901999\b/, () => String(roles.roles.find(({ name }) => name === 'Captain')?.id)],
    [/\bVIP\b/g, () => 'Recruit'],
    [/2026-05-01T18:00Z/, () => from(-1)],
    [/2026-05-01T19:00Z/, () => from(1)],
    [/2027-01-31/, () => from(48).slice(0, 10)],
    [/(?<=doctor --url )\S+/, () => 'https://127.0.0.1:1'],
    [/discord\.url/, () => 'discord.url --kind discord'],
    [/(?<=serve --port )8080/, () => '0'],
    [/\/etc\/rankd(?=\/)/, (folder) => join(folder, 'etc/rankd')],
    [/\/mnt\/usb/, (folder) => join(folder, 'mnt/usb')],
    [/\/usr\/local\/share\/man\/man1/, (folder) => join(folder, 'man1')],
    [/(?<=--to )postgres:\S+/, () => empty.pop() ?? ''],
    [/(?<=--from )postgres:\S+/, () => filled],
    [/\/var\/lib\/rankd/, (folder) => join(folder, 'data')],
    [/(?<=service (install|remove))/, (folder) => ` --dir ${join(folder, 'work/units')}`],
    [/^HEALTHCHECK CMD \["rankd", "health"\].*/, () => 'rankd health'],
  ];
  cpSync(home.folder, prepared.folder, { recursive: true });
  daemon = await DaemonHere.start(home, { env });
});

afterAll(async () => {
  await daemon.stop();
  await servers.disposeAsync();
  for (const one of [home, prepared]) one[Symbol.dispose]();
});

test.concurrent.each(examples)('%s', async (example) => {
  using own = new CliHome();
  const at =
    !inNewHome.test(example) && besideDaemon.test(example) && !before.some(([which]) => which.test(example))
      ? home
      : own;
  if (inNewHome.test(example)) {
    writeFileSync(own.path(example.includes('./roblox.key') ? 'roblox.key' : 'cloud.key'), robloxKey, { mode: 0o600 });
  } else if (at === own) {
    cpSync(prepared.folder, own.folder, { recursive: true });
    chmodSync(own.dataDir, 0o700);
  }
  for (const [which, lines] of before)
    if (which.test(example)) for (const line of lines) await runSetup(at, line.replace('HERE', at.cwd));
  const line = substitutions.reduce((text, [named, here]) => text.replace(named, () => here(at.folder)), example);
  const { code, says } = otherOutcomes[example] ?? { code: 0, says: /(?:)/ };
  const ended = await runLine(at, line);
  expect(ended, ended.output).toMatchObject({ code, output: expect.stringMatching(says) });
});

test('every example with a different expected outcome exists', () => {
  expect(examples).toEqual(expect.arrayContaining(Object.keys(otherOutcomes)));
});

async function delivered(): Promise<number[]> {
  const { deliveries } = await home.json<{ deliveries: Array<{ sequence: number; state: string }> }>(
    ...['webhook', 'deliveries', 'my-bot'],
  );
  return deliveries.flatMap(({ sequence, state }) => (state === 'delivered' ? [sequence] : []));
}

async function runSetup(at: CliHome, line: string): Promise<void> {
  const { code, stderr } = await at.here(line.split(' '), { env });
  expect({ line, code, stderr }).toMatchObject({ code: 0 });
}

/** Runs a command line. Uses a shell only if its shell syntax is more than one redirection. */
async function runLine(at: CliHome, line: string): Promise<{ code: number | null; output: string }> {
  const [, command = line, redirection, file = ''] = /^([^|&<>$]+) ([<>]) ([^|&<>$]+)$/.exec(line) ?? [];
  if (redirection === undefined && /[<>|&]/.test(line)) {
    const { code, stderr } = await at.shell(`set -eu -o pipefail\n${line}`, { env });
    return { code, output: stderr };
  }
  const all = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word = '']) => quoted ?? word);
  // Drops `rankd` and everything before it, such as `sudo -u rankd`.
  const words = all.slice((all[1] === '-u' ? 3 : all.indexOf('rankd')) + 1);
  if (redirection !== undefined) {
    const input = redirection === '<' ? readFileSync(at.path(file), 'utf8') : '';
    const { code, stdout, stderr } = await at.here(words, { env, input });
    if (redirection === '>') expect(stdout).not.toBe('');
    return { code, output: stderr };
  }
  const answers = [...(promptAnswers.find(([which]) => which.test(line))?.[1] ?? ['y'])];
  const io = new TerminalIo(at, answers);
  Object.assign(io.env, env, { HOME: at.folder });
  if (untilStopped.test(line)) io.stop();
  return { code: await runCli(words, io), output: io.out + io.err };
}
