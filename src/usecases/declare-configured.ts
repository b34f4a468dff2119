import type { Config } from '../config/config.ts';
import type { DeclaredKey } from '../config/declared-key.ts';
import { ConfigError, type Problem } from '../config/problem.ts';
import { newId } from '../core/api-key.ts';
import type { StillDeclared } from '../core/declarations.ts';
import { type DeclarationClash, judgeDeclarations } from '../core/declared-keys.ts';
import type { Key } from '../core/model.ts';
import type { Ports } from '../ports/index.ts';
import { declareWebhooks, refuseWebhookClashes } from './webhooks/edit-webhooks.ts';

/**
 * Applies the configuration's workspace id, keys and webhooks. Returns notes for the operator. Throws `config_invalid`
 * if the configuration conflicts with the stored data.
 */
export async function declareConfigured(
  app: Pick<Ports, 'store' | 'clock'>,
  { keys, webhooks, discord, workspace }: Pick<Config, 'keys' | 'webhooks' | 'discord' | 'workspace'>,
): Promise<string[]> {
  await declareWorkspace(app, workspace);
  const missing = await checkDiscordKeys(app, { keys, discord });
  await refuseWebhookClashes(app, webhooks.targets);
  const stillDeclared = await declareKeys(app, keys);
  const webhooksElsewhere = await declareWebhooks(app, webhooks.targets);
  return [
    ...missing,
    ...stillDeclared.map((one) => describeDeclared('key', one)),
    ...webhooksElsewhere.map((one) => describeDeclared('webhook', one)),
  ];
}

/**
 * Gives the workspace the configured id. Throws `config_invalid` if keys exist under a different id, because games may
 * already use it.
 */
async function declareWorkspace({ store }: Pick<Ports, 'store'>, wanted: Config['workspace']): Promise<void> {
  if (wanted === undefined) return;
  const { id } = await store.adoptWorkspaceId(wanted.id);
  if (id === wanted.id) return;
  const text = `is ${wanted.id}, but the database's workspace is ${id}, which games may use; set ${id}, or use a different database`;
  throw new ConfigError([{ at: wanted.at, setting: 'workspace.id', text }], { file: undefined });
}

/**
 * Throws `config_invalid` if a row of `discord.commands` names a game key. Returns a note for each row whose key is
 * missing or revoked; only that row's commands are then disabled.
 */
async function checkDiscordKeys(
  { store }: Pick<Ports, 'store'>,
  { keys, discord }: Pick<Config, 'keys' | 'discord'>,
): Promise<string[]> {
  const problems: Problem[] = [];
  const missing: string[] = [];
  for (const [index, { role, key: name, at }] of (discord?.rows ?? []).entries()) {
    const declared = keys.find((one) => one.name === name)?.rules;
    const key = declared ?? (await keyOfName(store, name));
    if (key?.isForDiscord) continue;
    if (key === undefined) {
      missing.push(
        `people with the Discord role ${role} can't change any rank, because there is no key "${name}"; run rankd key create ${name} --for-discord`,
      );
      continue;
    }
    const text = `is the game key "${name}"; expected a key that was created with rankd key create NAME --for-discord`;
    problems.push({ at, setting: `discord.commands[${index}].key`, text });
  }
  if (problems.length > 0) throw new ConfigError(problems, { file: undefined });
  return missing;
}

async function keyOfName(store: Pick<Ports['store'], 'findKey'>, name: string): Promise<Key | undefined> {
  const key = await store.findKey(name);
  return key?.name === name && key.revokedAt === undefined ? key : undefined;
}

/**
 * Applies the configuration's keys, and revokes those that no daemon declares any more. Throws `config_invalid` and
 * changes nothing if an undeclared key has the same name or secret. Returns the keys that other daemons declare, but
 * that this one has dropped or declares differently.
 */
async function declareKeys(
  { store, clock }: { store: Pick<Ports['store'], 'declareKeys'>; clock: Pick<Ports['clock'], 'now'> },
  declared: readonly DeclaredKey[],
): Promise<StillDeclared[]> {
  const declarations = declared.map((key) => ({ ...key, id: newId('key') }));
  const actor = { by: 'daemon', at: clock.now() };
  const { clashes, stillDeclared } = await store.declareKeys(declarations, judgeDeclarations(declarations, actor));
  if (clashes.length === 0) return stillDeclared;
  const problems = clashes.map((clash) => ({
    at: declared[clash.index]?.at[clash.field],
    setting: `keys[${clash.index}].${clash.field}`,
    text: describeClash(clash),
  }));
  throw new ConfigError(problems, { file: undefined });
}

function describeClash({ field, key: { id, name, revokedAt } }: DeclarationClash): string {
  const which = `the key "${name}" (${id}), which was created with rankd key create`;
  if (field === 'name')
    return `is the name of ${which}; revoke it (rankd key revoke ${name}) or choose a different name`;
  const what = revokedAt === undefined ? 'the secret' : 'the revoked secret';
  return `is the hash of ${what} of ${which}; make a new secret with rankd key hash --new FILE`;
}

function describeDeclared(what: 'key' | 'webhook', { name, nodes, inForce }: StillDeclared): string {
  const others = nodes.join(', ');
  if (inForce === undefined) return `the ${what} "${name}" stays in force, because it is still declared by ${others}`;
  const applied = inForce === 'own' ? "this daemon's declaration" : "another daemon's declaration";
  return `the ${what} "${name}" is declared differently by ${others}; ${applied} applies, because it is the newest`;
}
