import { dirname, relative, resolve } from 'node:path';
import { openRanking } from '../../app.ts';
import { RankdError } from '../../base/errors.ts';
import { type NewFile, requireRoom, withFiles } from '../../base/files.ts';
import { counted } from '../../base/text.ts';
import { isoDay } from '../../base/time.ts';
import type { Config } from '../../config/config.ts';
import type { LoadedConfig } from '../../config/load.ts';
import { isSameFile, newConfigPath } from '../../config/locate.ts';
import type { Chosen } from '../../config/settings.ts';
import { askStatus } from '../../control/ask.ts';
import { ownerRisk, standingWords } from '../../core/acting-account.ts';
import { listRoles, sharedRankOne, userTitle } from '../../core/describe.ts';
import type { ActingAccount, Role } from '../../core/model.ts';
import { nameForRequest, type RoleScheme } from '../../core/role-scheme.ts';
import { privilegesAmong } from '../../core/rules/ranks.ts';
import { callWithin } from '../../ports/platform.ts';
import { type ExaminedGroup, examineGroup } from '../../usecases/group/examine-group.ts';
import { roleTitleDocument } from '../../usecases/group/group-document.ts';
import { storeServedGroup } from '../../usecases/group/served-group.ts';
import type { MintedKey } from '../../usecases/keys/keys.ts';
import { userNameIfKnown } from '../../usecases/people/users.ts';
import type { Cli } from '../cli.ts';
import { command, flag, option, type ValuesOf } from '../command.ts';
import { otherFileText } from '../daemon-here.ts';
import { obtainCredential } from '../init/credential.ts';
import { makeFirstKey, requestFirstKey, requireFreeName, secretFile } from '../init/first-key.ts';
import { gameModels, nextSteps, requestForGame } from '../init/for-game.ts';
import { makeWebhook, requestWebhook } from '../init/webhook.ts';
import { asGameUrl, asGroupId, asPlaceId, keyName, newFileName, nonEmpty } from '../input/arguments.ts';
import { isAgreed } from '../input/confirm.ts';
import { whileWaiting } from '../output/terminal.ts';
import { printSecret } from './key-secrets.ts';
import { serve } from './serve.ts';

const initOptions = {
  group: option('--group <id>', 'id of the group', asGroupId),
  credentialFile: option(
    '--credential-file <file>',
    'file with the Roblox key (an Open Cloud API key), - for standard input',
  ),
  ladder: flag('--ladder', 'use all roles that rankd can give as the promotion ladder'),
  check: flag('--no-check', 'do not check with Roblox that the key works for the group'),
  key: option('--key <name>', 'create a game key with this name', keyName),
  place: option('--place <id>', 'place from which the game key can be used', asPlaceId),
  out: option('--out <file>', 'write the secret of the game key to this new file', newFileName),
  url: option(
    '--url <url>',
    'where games reach rankd (server.public_url); also writes the model for the game',
    asGameUrl,
  ),
  system: option(
    '--system <system>',
    'also write the commands for this admin system, named as in `rankd game list`',
    nonEmpty,
  ),
  force: flag('--force', 'overwrite existing files, and keep the old ones with .old added to their names'),
};

type InitOptions = ValuesOf<typeof initOptions>;

export const initCommand = command({
  name: 'init',
  about: 'set rankd up for a real group: check the Roblox key, write rankd.yaml, create the first key',
  options: initOptions,
  examples: [
    'rankd init',
    'rankd init --group 4199740 --credential-file ./roblox.key',
    'rankd init --group 4199740 --credential-file - --key my-game --place 920587237 --out my-game.key < cloud.key',
  ],
  run: init,
});

async function init(cli: Cli, options: InitOptions): Promise<void> {
  const file = newConfigPath(cli.configSources);
  cli.io.interruptMessage = 'Nothing was written.';
  await refuseEarly(cli, options, file);
  const { groupId, credential, found } = await obtainCredential(cli.io, options, dirname(file), async (given) => {
    const { config } = await configWith(cli, given);
    return { config, examined: options.check ? await examineLive(cli, config, given) : undefined };
  });
  const { config, examined } = found;
  if (examined !== undefined) reportGroup(cli, examined);
  const ladder = await chooseLadder(cli, options, examined?.givable ?? []);
  const firstKey = await requestFirstKey(cli, options);
  const savedTo = secretFile(cli, firstKey?.name, options.out);
  const forGame = await requestForGame(cli, options, config);
  const channel = await requestWebhook(cli, config);

  const chosen = new Map<string, Chosen>([
    ['group.id', { value: groupId, ...(examined && { note: examined.group.name }) }],
    ['platform.api_key_file', { value: relativeTo(file, credential.file) }],
    ['policy.privileged_roles', { value: 'operator' }],
    ...(forGame.url === undefined ? [] : [['server.public_url', { value: forGame.url }] as const]),
  ]);
  if (examined !== undefined && ladder !== undefined)
    chosen.set('group.ladder', { value: ladderEntries(examined.scheme, ladder), note: listRoles(ladder) });
  const { renderYaml } = await import('../../config/settings.ts');
  // lets only members at or above the acting account's rank use commands
  const minGroupRank = examined?.acting?.rank || undefined;
  const models = gameModels(cli, forGame, { groupId, minGroupRank }, options);
  const files: NewFile[] = [
    ...(credential.isNew ? [{ path: credential.file, text: `${credential.secret}\n`, mode: 0o600 }] : []),
    { path: file, text: renderYaml(chosen) },
    ...models.written.map((model) => model.file),
  ];
  cli.io.interruptMessage = undefined;
  const minted = await withFiles(files, async () => {
    const loaded = await cli.loadConfig();
    await cli.withStore((ports) => storeServedGroup(ports, loaded));
    return firstKey && makeFirstKey(cli, firstKey, savedTo);
  });
  cli.say(`Wrote ${file}.`);
  const webhook = channel === undefined ? null : await makeWebhook(cli, channel);

  const document = initDocument({
    ...{ file, credentialFile: credential.file, groupId, examined, ladder, webhook },
    keyId: minted?.key.id,
    publicUrl: forGame.url,
    models: models.written.map((model) => model.file.path),
  });
  cli.sayStorageLocation();
  const start = await startStep(cli, options, file);
  const done = {
    start: start.step,
    key: firstKey && { name: firstKey.name, hasPlace: firstKey.place !== undefined },
    minGroupRank,
  };
  cli.say(`\nNext:\n${nextSteps({ ...done, ...forGame, ...models }, config.server)}`);
  if (minted === undefined || options.out !== undefined) cli.print(document, cli.io.stdoutIsTerminal ? '' : file);
  else await showKey(cli, minted, { document, savedTo });
  if (start.startsNow) await serve(cli, { simulate: false, console: false }, startAgainHint);
}

const startAgainHint = 'rankd runs in this window until you press Ctrl-C. To start it again: rankd serve';

/** Prints the key after the next steps, so that it does not scroll away. */
async function showKey(
  cli: Cli,
  { key, secret }: MintedKey,
  { document, savedTo }: { document: object; savedTo: string | undefined },
): Promise<void> {
  cli.say(
    savedTo === undefined
      ? '\nThe game key, which is not shown again:\n'
      : `\nThe game key, which is also saved in ${savedTo}:\n`,
  );
  await printSecret(cli, key, { ...document, secret }, secret);
  cli.say(`\nPut it into a secret named rankd on the Creator Dashboard (your experience, Secrets).`);
}

/**
 * Returns the step that makes a daemon use the new file. If no daemon is running, asks on a terminal whether init
 * should start one (`startsNow`).
 */
async function startStep(
  cli: Cli,
  { out }: InitOptions,
  file: string,
): Promise<{ step: string | undefined; startsNow: boolean }> {
  const { dataDir, operations, io, options } = cli;
  if (!(await operations.isDaemonRunning())) {
    const mayAsk = io.isTerminal && io.stdoutIsTerminal && !options.json && out === undefined;
    const startsNow = mayAsk && (await isAgreed(cli, 'Start rankd now, in this window?', { preset: true }));
    return { step: startsNow ? undefined : 'Start it: rankd serve', startsNow };
  }
  const isSame = (read: string | null) => read !== null && isSameFile(read, file);
  const daemon = await askStatus(dataDir);
  const step =
    daemon === undefined || isSame(daemon.configFile)
      ? 'A daemon is already running here. To apply this without a restart: rankd reload'
      : `A daemon is already running here, but ${otherFileText(daemon.configFile, file)}`;
  return { step, startsNow: false };
}

/** Rejects a run that is certain to fail, before it asks any question. */
async function refuseEarly(cli: Cli, { key, place, out, force }: InitOptions, file: string): Promise<void> {
  if (key === undefined && !cli.io.isTerminal && (place !== undefined || out !== undefined)) {
    throw new RankdError(
      'usage',
      `${place === undefined ? '--out' : '--place'} is for a game key, but no game key is requested.`,
      {
        hint: 'add --key NAME to create one',
      },
    );
  }
  if (!force) requireRoom(file, `add --force to keep it as ${file}.old and write a new one`);
  const savedTo = secretFile(cli, key, out);
  if (savedTo !== undefined) requireRoom(resolve(cli.io.cwd, savedTo));
  if (key !== undefined) await requireFreeName(cli, key);
}

interface ExaminedAsNamed extends ExaminedGroup {
  accountName: string | undefined;
}

async function examineLive(cli: Cli, config: Config, { groupId }: { groupId: number }): Promise<ExaminedAsNamed> {
  await using app = await openRanking({ config, dataDir: cli.dataDir, onMigrated: cli.onMigrated });
  using call = callWithin(app.clock, app.deadlineMs, 'operator');
  return await whileWaiting(cli.line, 'waiting for Roblox', async () => {
    const found = await examineGroup(app, call, groupId);
    return { ...found, accountName: found.acting && (await userNameIfKnown(app, found.acting.userId, call)) };
  });
}

/** Validates the answers with the configuration loader, before any file is written. */
async function configWith(cli: Cli, { groupId, secret }: { groupId: number; secret: string }): Promise<LoadedConfig> {
  const { loadConfig } = await import('../../config/load.ts');
  return loadConfig({
    ...cli.configSources,
    flags: { 'group.id': String(groupId), 'platform.kind': 'open-cloud' },
    env: { ...cli.io.env, RANKD_PLATFORM_API_KEY: secret },
    configFile: null,
  });
}

function reportGroup(
  cli: Cli,
  { group, acting, accountName, expiresAt, canWrite, givable, scheme }: ExaminedAsNamed,
): void {
  const until = expiresAt === undefined ? '' : `, until ${isoDay(expiresAt)}`;
  cli.say(`The key works${until}.`);
  cli.say(`Group: ${group.name} (${group.id}), ${counted(group.memberCount, 'member')}.`);
  if (group.isLocked) cli.say('Roblox has locked this group: nothing in it can be changed until it is unlocked.');
  if (canWrite === undefined)
    cli.say(
      'Roblox does not show whether the key can change roles in this group. On the Creator Dashboard, under API Keys, check that it has group:write.',
    );
  if (canWrite === false)
    cli.say(
      "Roblox does not list group:write for this group among the key's scopes; if changes are denied, add that scope.",
    );
  if (acting === undefined) {
    cli.say('Roblox does not show which account the key acts as, or which ranks that account can give.');
    return;
  }
  cli.say(
    `The key acts as ${userTitle(acting.userId, accountName)}, ${standingWords(acting)}${permissionWords(acting)}.`,
  );
  const risk = ownerRisk(acting);
  if (risk !== undefined) cli.say(`warning: ${risk.text}.\ntry: ${risk.fix}`);
  cli.say(`Roles it can give, by rank: ${listRoles(givable)}.`);
  const shared = sharedRankOne(scheme);
  if (shared !== undefined) cli.say(`${shared}.`);
  cli.say(privilegeWords(givable));
}

function privilegeWords(givable: Role[]): string {
  const { privileged, unreported } = privilegesAmong(givable, 'operator');
  if (unreported.length > 0)
    return `Roblox does not show what ${listRoles(unreported)} may do. If ${unreported.length === 1 ? 'that role' : 'one of them'} may rank, remove or accept members, list it in rankd.yaml: policy.privileged_roles: [RANK, ...]`;
  if (privileged.length === 0) return 'None of these roles has power over others.';
  const [have, them] = privileged.length === 1 ? ['has', 'it'] : ['have', 'them'];
  return `Of these roles, ${listRoles(privileged)} ${have} power over others, so only the operator may give and take ${them} (policy.privileged_roles).`;
}

function permissionWords({ mayChangeRanks }: ActingAccount): string {
  return mayChangeRanks === undefined
    ? ' (only keys with group:read can see whether its role may manage ranks)'
    : ', and may manage the ranks of members below it';
}

function relativeTo(configFile: string, file: string): string {
  const path = relative(dirname(configFile), file);
  return path.startsWith('..') ? file : `./${path}`;
}

/** Returns the ladder's roles in ascending order; `undefined` means no ladder. */
async function chooseLadder(cli: Cli, { ladder }: { ladder?: boolean }, givable: Role[]): Promise<Role[] | undefined> {
  const { proposed, leftOut } = proposeLadder(givable);
  const isAsked = ladder || cli.io.isTerminal;
  if (leftOut.length > 0 && isAsked)
    cli.say(`Left out of the ladder, because each shares its rank with another role: ${listRoles(leftOut)}.`);
  if (proposed.length === 0 || !isAsked) return undefined;
  if (ladder) return proposed;
  cli.say(
    'A promotion ladder is the list of roles that members climb. rankd keeps each member in exactly one of them, and leaves all other roles, such as VIP, alone.\nIf you are not sure, press Enter.',
  );
  return (await isAgreed(cli, `Use these roles as the ladder: ${listRoles(proposed)}?`, { preset: true }))
    ? proposed
    : undefined;
}

/** Proposes the custom roles. Leaves out those that share a rank, because a ladder cannot contain both. */
function proposeLadder(givable: Role[]): { proposed: Role[]; leftOut: Role[] } {
  const custom = givable.filter(({ kind }) => kind === 'custom');
  const isShared = (role: Role) => custom.some(({ id, rank }) => rank === role.rank && id !== role.id);
  return { proposed: custom.filter((role) => !isShared(role)), leftOut: custom.filter(isShared) };
}

function ladderEntries(group: Pick<RoleScheme, 'roles' | 'rankOne'>, ladder: Role[]): number[] {
  return ladder.map((role) => nameForRequest(group, role));
}

/** All paths are absolute. */
interface Initialized {
  file: string;
  credentialFile: string;
  groupId: number;
  /** `undefined` with --no-check. */
  examined: Pick<ExaminedGroup, 'group'> | undefined;
  ladder: readonly Role[] | undefined;
  keyId: string | undefined;
  publicUrl: string | undefined;
  /** The new webhook's name; null if there is none. */
  webhook: string | null;
  models: readonly string[];
}

function initDocument(made: Initialized) {
  const { file, credentialFile, groupId, examined, ladder, keyId, publicUrl, webhook, models } = made;
  return {
    file,
    credentialFile,
    group: examined?.group ?? { id: groupId },
    ladder: ladder?.map(roleTitleDocument) ?? null,
    key: keyId ?? null,
    publicUrl: publicUrl ?? null,
    webhook,
    models,
  };
}
