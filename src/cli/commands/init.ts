import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import type { Command } from 'commander';
import { openRanking } from '../../app.ts';
import { deadlineIn } from '../../clock.ts';
import type { LoadedConfig } from '../../config/load.ts';
import type { Chosen } from '../../config/render-yaml.ts';
import type { ActingAccount } from '../../core/acting-account.ts';
import { listRoles } from '../../core/role-plan.ts';
import { RankdError } from '../../errors.ts';
import { isDaemonRunning } from '../../stores/sqlite/daemon-lock.ts';
import { asGroupId, asPlaceId, keyName } from '../arguments.ts';
import type { Cli } from '../cli.ts';
import { counted } from '../counted.ts';
import { examples } from '../help.ts';
import { obtainCredential } from '../init/credential.ts';
import { type Examined, examine } from '../init/examine.ts';
import { firstKey } from '../init/first-key.ts';
import { chooseLadder, ladderEntries } from '../init/ladder.ts';
import { luauSnippet } from '../init/snippet.ts';
import { whileWaiting } from '../patience.ts';

interface InitOptions {
  group?: number;
  credentialFile?: string;
  ladder?: boolean;
  key?: string;
  place?: number;
  out?: string;
  check: boolean;
  force?: boolean;
}

export function initCommand(program: Command, cli: Cli): void {
  program
    .command('init')
    .description('set rankd up for a real group: check the Open Cloud key, write rankd.yaml, make the first key')
    .option('--group <id>', 'id of the group', asGroupId)
    .option('--credential-file <file>', 'file with the Open Cloud API key, - for standard input')
    .option('--ladder', 'make the roles that can be given the promotion ladder')
    .option('--no-check', 'do not ask Roblox whether key and group fit')
    .option('--key <name>', 'make this API key for the games', keyName)
    .option('--place <id>', 'place that the API key is good for', asPlaceId)
    .option('--out <file>', 'write the secret of the API key to this new file')
    .option('--force', 'keep an existing rankd.yaml as rankd.yaml.old')
    .addHelpText(
      'after',
      examples(
        'rankd init',
        'rankd init --group 4199740 --credential-file ./roblox.key',
        'rankd init --group 4199740 --credential-file - --key my-game --place 920587237 --out my-game.key < roblox.key',
      ),
    )
    .action((options: InitOptions) => init(cli, options));
}

async function init(cli: Cli, options: InitOptions): Promise<void> {
  const file = resolve(cli.io.cwd, cli.options.config ?? 'rankd.yaml');
  if (existsSync(file) && !options.force) {
    throw new RankdError('already_exists', `${file} exists already.`, {
      hint: `keep it as ${file}.old and write a new one with: rankd init --force`,
    });
  }
  const { groupId, credential } = await obtainCredential(cli.io, options, dirname(file));
  const examined = options.check ? await examineLive(cli, { groupId, secret: credential.secret }) : undefined;
  if (examined !== undefined) tell(cli, examined);
  const ladder = await chooseLadder(cli, options, examined?.givable ?? []);

  if (credential.isNew) writeFileSync(credential.file, `${credential.secret}\n`, { flag: 'wx', mode: 0o600 });
  if (existsSync(file)) renameSync(file, `${file}.old`);
  const chosen = new Map<string, Chosen>([
    ['group.id', { value: groupId, ...(examined && { note: examined.group.name }) }],
    ['platform.api_key_file', { value: relativeTo(file, credential.file) }],
  ]);
  if (ladder !== undefined) chosen.set('group.ladder', { value: ladderEntries(ladder), note: listRoles(ladder) });
  const { renderYaml } = await import('../../config/render-yaml.ts');
  writeFileSync(file, renderYaml(chosen), { flag: 'wx' });
  cli.say(`Wrote ${file}.`);

  const { config } = await cli.loadConfig();
  const minted = await firstKey(cli, options);
  const url = `http://${config.server.host}:${config.server.port}`;
  cli.print(
    {
      file,
      credentialFile: credential.file,
      group: examined?.group ?? { id: groupId },
      ladder: ladder?.map(({ rank, id, name }) => ({ rank, id, name })) ?? null,
      key: minted === undefined ? null : minted.key.id,
      ...(minted !== undefined && options.out === undefined && { secret: minted.secret }),
    },
    minted === undefined || options.out !== undefined ? file : minted.secret,
  );
  cli.say(`\nFor the game, with the address where it reaches rankd in place of ${url}:\n\n${luauSnippet(url)}\n`);
  cli.say((await isDaemonRunning(cli.dataDir)) ? takeUp : 'try: rankd serve');
}

const takeUp = 'A daemon runs here already; it takes this up without a restart.\ntry: rankd reload';

/** Through the configuration's own loader, so that what it would refuse is refused before anything is written. */
async function examineLive(cli: Cli, { groupId, secret }: { groupId: number; secret: string }): Promise<Examined> {
  const { config } = await configWith(cli, { groupId, secret });
  await using app = await openRanking({ config, dataDir: cli.dataDir });
  using deadline = deadlineIn(app.clock, app.deadlineMs);
  const call = { signal: deadline.signal, deadlineAt: deadline.at, lane: 'operator' };
  return await whileWaiting(cli.line, 'waiting for Roblox', () => examine(app, call));
}

async function configWith(cli: Cli, { groupId, secret }: { groupId: number; secret: string }): Promise<LoadedConfig> {
  const { loadConfig } = await import('../../config/load.ts');
  const { env, cwd } = cli.io;
  return loadConfig({
    flags: { 'group.id': String(groupId), 'platform.kind': 'open-cloud' },
    env: { ...env, RANKD_PLATFORM_API_KEY: secret },
    cwd,
    configFile: null,
  });
}

function tell(cli: Cli, { group, acting, expiresAt, givable }: Examined): void {
  const until = expiresAt === undefined ? '' : `, until ${new Date(expiresAt).toISOString().slice(0, 10)}`;
  cli.say(`The key works${until}.`);
  cli.say(`Group: ${group.name} (${group.id}), ${counted(group.memberCount, 'member')}.`);
  if (acting !== undefined) cli.say(`It acts as user ${acting.userId}, rank ${acting.rank}${permissionWords(acting)}.`);
  cli.say(`Ranks it can give: ${listRoles(givable)}.`);
}

function permissionWords({ mayChangeRanks }: ActingAccount): string {
  return mayChangeRanks === undefined
    ? ' (whether its role may manage the ranks of others, Roblox shows only to keys with group:read)'
    : ', and may manage the ranks of members below';
}

function relativeTo(configFile: string, file: string): string {
  const path = relative(dirname(configFile), file);
  return path.startsWith('..') ? file : `./${path}`;
}
