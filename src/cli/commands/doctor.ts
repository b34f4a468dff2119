import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { checkLivePlatform, openRanking } from '../../app.ts';
import { systemClock } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { requireRoom, ScratchDirectory, withFiles } from '../../base/files.ts';
import { version } from '../../base/version.ts';
import type { Config } from '../../config/config.ts';
import type { LoadedConfig } from '../../config/load.ts';
import { askIdentity, askStatus } from '../../control/ask.ts';
import { controlPath } from '../../control/control.ts';
import { whyNoSocket } from '../../control/listen.ts';
import type { LiveFinding } from '../../ports/index.ts';
import { callWithin } from '../../ports/platform.ts';
import { discordFindings } from '../../usecases/doctor/discord.ts';
import {
  examined,
  type Finding,
  fail,
  findingsDocument,
  liveDocument,
  ok,
  warn,
  withoutIds,
} from '../../usecases/doctor/finding.ts';
import {
  credentialFindings,
  groupFindings,
  namesFindings,
  platformFindings,
  proxyFindings,
  reachFindings,
  trustFindings,
} from '../../usecases/doctor/platform.ts';
import { nodesFindings, serverFindings } from '../../usecases/doctor/server.ts';
import {
  daemonFindings,
  databaseFindings,
  erasureFindings,
  keyFindings,
  suspensionFindings,
  webhookFindings,
  workspaceFindings,
} from '../../usecases/doctor/store.ts';
import { hintOf } from '../../usecases/error-document.ts';
import { stuckHolds } from '../../usecases/holds/open-hold.ts';
import { inspectKeys } from '../../usecases/keys/inspect-keys.ts';
import type { DaemonStatus } from '../../usecases/upkeep/status-document.ts';
import { viewWebhooks } from '../../usecases/webhooks/view-webhooks.ts';
import { showWorkspace } from '../../usecases/workspace/workspace.ts';
import type { Cli } from '../cli.ts';
import { command, flag, option, type ValuesOf } from '../command.ts';
import { asChosenByDaemon, otherGroup } from '../daemon-here.ts';
import { asGameUrl, asUser, newFileName } from '../input/arguments.ts';
import { userIdOf } from '../input/people.ts';
import { clockFindings, dataDirFindings, nodeFindings, portFindings } from '../machine-findings.ts';
import { ExitCode } from '../output/errors.ts';
import { noScreen, type Shown } from '../output/table.ts';
import { whileWaiting } from '../output/terminal.ts';
import { printable, wrapped } from '../output/text.ts';
import { readAccessList } from '../windows-access.ts';

const doctorOptions = {
  offline: flag('--offline', 'skip the checks that need Roblox'),
  url: option(
    '--url [url]',
    'also check this address, where games reach rankd (default: server.public_url)',
    asGameUrl,
  ).conflicts('live') as ReturnType<typeof option<string | true>>, // true: without a value, use server.public_url
  live: flag('--live', 'check that Roblox responds as rankd expects, with at most 16 calls, which only read').conflicts(
    'offline',
  ),
  member: option(
    '--member <user>',
    'with --live: also give this member a role that they have and take one that they do not have, which changes nothing',
    asUser,
  ),
  report: option('--report <file>', 'with --live: write the findings to this new file, without ids', newFileName),
};

type DoctorOptions = ValuesOf<typeof doctorOptions>;

export const doctorCommand = command({
  name: 'doctor',
  about:
    'check for problems that stop rankd from working, or soon will; changes nothing; exits with 5 if a check FAILs',
  options: doctorOptions,
  examples: [
    'rankd doctor',
    'rankd doctor --offline',
    'rankd doctor --url https://rankd.example.com',
    'rankd doctor --json',
    'rankd doctor --live --report report.txt',
  ],
  run: (cli, options) => (options.live ? doctorLive(cli, options) : doctor(cli, options)),
});

async function doctorLive(cli: Cli, { member, report }: DoctorOptions): Promise<void> {
  const { config } = await cli.loadConfig();
  const { platform } = config;
  if (platform.kind !== 'open-cloud') {
    throw new RankdError('usage', '--live checks the real Roblox, but the configured group is simulated.', {
      hint: 'rankd init',
    });
  }
  if (report !== undefined) requireRoom(resolve(cli.io.cwd, report));
  if (member !== undefined) cli.enterDataDir();
  const memberId = member === undefined ? undefined : await userIdOf(cli, member);
  using call = callWithin(systemClock, liveTimeoutMs, 'operator');
  const rest = { clock: systemClock, signal: call.signal, memberId };
  const findings = await whileWaiting(cli.line, 'asking Roblox', () => checkLivePlatform(platform, rest));
  const document = liveDocument(findings);
  const lines = liveLines(document.checks);
  if (report !== undefined) {
    const text = withoutIds(`rankd ${version}, doctor --live\n${lines}\n`);
    await withFiles([{ path: resolve(cli.io.cwd, report), text }], async () => undefined);
  }
  cli.print(document, lines);
  if (!document.ok) throw new ExitCode(5);
}

/** Long enough for 16 calls and the wait between a write and a read, unless Roblox hangs. */
const liveTimeoutMs = 60_000;

function liveLines(checks: LiveFinding[]): string {
  return checks
    .flatMap(({ check, result, details }) => [
      `${result.padEnd(7)}  ${check}`,
      ...details.map((detail) => `           ${printable(detail)}`),
    ])
    .join('\n');
}

async function doctor(cli: Cli, options: DoctorOptions): Promise<void> {
  cli.refuseRootIn(cli.dataDir);
  const findings = await whileWaiting(cli.line, 'checking', () => allFindings(cli, options));
  const document = findingsDocument(findings);
  cli.print(document, report(cli, findings));
  if (!document.ok) throw new ExitCode(5);
}

async function allFindings(cli: Cli, { offline, url }: DoctorOptions): Promise<Finding[]> {
  const data = await examined('data', () =>
    dataDirFindings(cli.dataDir, { readAccessList: (path) => readAccessList(path, cli.io.env) }),
  );
  const isUsable = data.every(({ check, grade }) => check === 'disk' || grade !== 'FAIL');
  const daemon = isUsable ? await examined('daemon', async () => daemonFindings(await askStatus(cli.dataDir))) : [];
  const node = await examined('node', () => nodeFindings(cli.io.nodeVersion));
  const socket = isUsable ? await examined('socket', () => socketFindings(cli)) : [];
  const findings = [...node, ...data, ...socket, ...daemon];
  let loaded: LoadedConfig | undefined;
  findings.push(
    ...(await examined('config', async () => {
      loaded = await cli.loadConfig();
      return [ok('config', loaded.file ?? 'no file: environment variables and defaults')];
    })),
  );
  if (loaded !== undefined) findings.push(...(await configured(cli, loaded, { offline, isUsable })));
  const asked = url === true ? loaded?.config.server.publicUrl : url;
  if (url !== undefined)
    findings.push(...(await examined('address', () => addressOf(cli, asked, { isUsable, config: loaded?.config }))));
  return findings;
}

/** Checks that the running daemon has a socket for commands, or that a new daemon could create one. */
async function socketFindings({ dataDir, operations, io }: Cli): Promise<Finding[]> {
  if (!existsSync(dataDir)) return [];
  const isRunning = await operations.isDaemonRunning();
  if (isRunning && controlPath(dataDir) !== undefined) return [];
  const problem = isRunning ? `the daemon has no socket in ${dataDir}` : await whyNoSocket({ dataDir, env: io.env });
  if (problem === undefined) return [];
  const fix = 'set TMPDIR to a local folder that rankd can write to, or move the data directory, then restart rankd';
  return [fail('socket', `${problem}, so status, health, reload and the page do not work`, fix)];
}

async function addressOf(
  cli: Cli,
  url: string | undefined,
  { isUsable, config }: { isUsable: boolean; config: Config | undefined },
): Promise<Finding[]> {
  if (url === undefined) {
    const fix = 'rankd doctor --url https://rankd.example.com, or set server.public_url in rankd.yaml';
    return [fail('address', 'rankd does not know where games reach it: server.public_url is not set', fix)];
  }
  const { addressFindings, discordAddressFinding } = await import('../address-findings.ts');
  const identity = isUsable ? await askIdentity(cli.dataDir) : undefined;
  const status = identity === undefined ? undefined : await askStatus(cli.dataDir);
  const daemon = identity === undefined || status === undefined ? undefined : { identity, url: status.url };
  const findings = await addressFindings(url, daemon);
  if (config?.discord === undefined || daemon === undefined) return findings;
  return [...findings, await discordAddressFinding(url, daemon)];
}

interface Scope {
  offline: boolean;
  /**
   * False if a check of the data directory failed, except for the check of its free space; most checks then do not open
   * the directory.
   */
  isUsable: boolean;
}

async function configured(cli: Cli, { config }: LoadedConfig, { offline, isUsable }: Scope): Promise<Finding[]> {
  const hasDaemon = async () => existsSync(cli.dataDir) && (await cli.operations.isDaemonRunning());
  const isRunning = async () => isUsable && (await hasDaemon());
  const findings = [
    ...(await examined('port', async () => portFindings(config.server, await hasDaemon().catch(() => undefined)))),
    ...platformFindings(config.platform),
  ];
  let daemon: DaemonStatus | undefined;
  findings.push(
    ...(await examined('behavior', async () => {
      daemon = (await isRunning()) ? await askStatus(cli.dataDir) : undefined;
      const other = otherGroup(daemon, config);
      return [...(other ? [warn('daemon', other.message, hintOf(other))] : []), ...trustFindings(daemon)];
    })),
  );
  let isKept = false;
  const database = await examined('database', async () => {
    isKept = isUsable && (await cli.operations.exists());
    return isKept ? databaseFindings(cli.operations) : [];
  });
  const server = await examined('server', async () =>
    isUsable && !hasFailed(database) ? serverFindings(await cli.operations.serverFacts()) : [],
  );
  findings.push(...database, ...server);
  if (database.some(({ grade }) => grade !== 'ok')) return findings;
  const live = await examined('database', async () => {
    // doctor must not create the database, and a temporary one is enough to check the platform
    using scratch = isKept ? undefined : new ScratchDirectory();
    const chosen = asChosenByDaemon(daemon, config);
    await using app = await openRanking(
      scratch
        ? { config: { ...chosen, store: undefined }, dataDir: scratch.path }
        : { config: chosen, dataDir: cli.dataDir },
    );
    using call = callWithin(app.clock, app.deadlineMs, 'operator');
    const { platform } = config;
    const ofDatabase = scratch
      ? []
      : [
          ...(await examined('workspace', async () => workspaceFindings(await showWorkspace(app)))),
          ...(await examined('daemons', async () => nodesFindings((await app.store.nodes?.listNodes()) ?? []))),
          ...(await examined('suspension', async () => suspensionFindings(await stuckHolds(app)))),
          ...(await examined('forgetting', async () =>
            erasureFindings(await app.store.waitingErasures(), app.clock.now()),
          )),
          ...(await examined('webhooks', async () => webhookFindings(await viewWebhooks(app)))),
          ...(await examined('keys', async () => keyFindings(await inspectKeys(app), config.platform))),
          ...(await examined('discord', async () => discordFindings(app, config.discord, daemon))),
        ];
    if (offline) return ofDatabase;
    // in parallel, so that a check that hangs does not use up the deadline of the others
    const ofPlatform = await Promise.all([
      examined('credential', async () => (platform.kind === 'open-cloud' ? credentialFindings(app, call) : [])),
      examined('group', () => groupFindings(app, call)),
      examined('names', async () => (platform.kind === 'open-cloud' ? namesFindings(app, call) : [])),
    ]);
    const { unreached, clockAheadMs } = app.platform.reachability();
    return [
      ...ofDatabase,
      ...(platform.kind === 'open-cloud'
        ? [...proxyFindings(platform), ...reachFindings(unreached, platform.baseUrl)]
        : []),
      ...clockFindings(clockAheadMs),
      ...withoutTwins(ofPlatform.flat()),
    ];
  });
  // if rankd refuses the database because it is for a different group, the platform's hint to run `init` does not help
  const isRefused = live.some(({ check, grade }) => check === 'database' && grade === 'FAIL');
  return [...findings.filter(({ check }) => !isRefused || check !== 'platform'), ...live];
}

/** Removes duplicates: if the platform is unreachable, every check that calls it reports this. */
function withoutTwins(findings: Finding[]): Finding[] {
  return findings.filter(
    (one, index) => index === findings.findIndex(({ check, text }) => check === one.check && text === one.text),
  );
}

function hasFailed(findings: Finding[]): boolean {
  return findings.some(({ grade }) => grade === 'FAIL');
}

/** The checks whose displayed names differ from their names in the JSON document. */
const checkNames: Record<string, string> = { credential: 'Roblox key', keys: 'game keys', platform: 'Roblox' };

function report(cli: Cli, findings: Finding[]): Shown {
  const named = findings.map((finding) => ({ ...finding, name: checkNames[finding.check] ?? finding.check }));
  const width = Math.max(...named.map(({ name }) => name.length));
  const indent = ' '.repeat(width + 8);
  return (screen) => {
    const { columns = Number.POSITIVE_INFINITY, paint } = screen ?? noScreen;
    const broken = (text: string) => wrapped(printable(text), columns - indent.length);
    return named
      .flatMap(({ name, grade, text, fix }) => {
        const [first, ...more] = broken(text);
        const fixes = fix === undefined ? [] : broken(`try: ${cli.asTyped(fix)}`).map(paint.dimmed);
        const gradeText = paint.state(grade) + ' '.repeat(4 - grade.length);
        return [`${gradeText}  ${name.padEnd(width)}  ${first}`, ...[...more, ...fixes].map((line) => indent + line)];
      })
      .join('\n');
  };
}
