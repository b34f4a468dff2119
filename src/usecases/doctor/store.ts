import { counted } from '../../base/text.ts';
import { isoDay, isoTime } from '../../base/time.ts';
import type { Config } from '../../config/config.ts';
import { memberTitle } from '../../core/describe.ts';
import type { ErasureRequest, Hold, Key, Workspace } from '../../core/model.ts';
import { waitingText } from '../../core/webhooks/webhook.ts';
import type { StoreOperations } from '../../ports/index.ts';
import type { KeyInspection } from '../keys/inspect-keys.ts';
import type { DaemonStatus } from '../upkeep/status-document.ts';
import type { WebhookView } from '../webhooks/view-webhooks.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

export async function databaseFindings(operations: Pick<StoreOperations, 'check'>): Promise<Finding[]> {
  const { schema, newestSchema, checks, fix } = await operations.check();
  const flaw = checks.find((check) => !check.ok);
  if (flaw !== undefined) return [fail('database', `${flaw.name}: ${flaw.detail}`, fix)];
  if (schema === newestSchema) return [ok('database', `sound, schema ${schema}`)];
  return [warn('database', `the database has schema ${schema}; this rankd needs ${newestSchema}`, 'rankd db migrate')];
}

export function workspaceFindings({ active, plan }: Workspace): Finding[] {
  return [
    ...(active ? [] : [warn('workspace', 'suspended: every key is refused', 'rankd workspace resume')]),
    ...(plan === 'top'
      ? []
      : [warn('workspace', 'not on the top plan: no key is accepted', 'rankd workspace plan top')]),
  ];
}

export function suspensionFindings(stuck: Hold[]): Finding[] {
  return stuck.map((hold) =>
    fail(
      'suspension',
      `${memberTitle(hold)} can't be given the previous roles: ${hold.message}`,
      `rankd tries again every hour, and after a reload; details: rankd suspension show ${hold.rankeeId}`,
    ),
  );
}

/**
 * Warns about erasure requests that are more than a week old. Roblox sets no deadline, but the GDPR allows only a
 * month.
 */
export function erasureFindings(waiting: readonly ErasureRequest[], now: number): Finding[] {
  const late = waiting.filter(({ receivedAt }) => now - receivedAt > lateAfterMs);
  const [oldest] = late;
  if (oldest === undefined) return [];
  const text = `${counted(late.length, 'request')} to be forgotten, the oldest from ${isoDay(oldest.receivedAt)}; the GDPR allows a month`;
  return [warn('forgetting', text, 'rankd forget --requested')];
}

const lateAfterMs = 7 * 86_400_000;

export function keyFindings(inspections: KeyInspection[], { kind }: Pick<Config['platform'], 'kind'>): Finding[] {
  const simulated = kind === 'simulated' ? [] : inspections.filter(({ key }) => key.isSimulated);
  const working = inspections.filter((one) => !simulated.includes(one));
  const findings = [
    ...simulated.map(({ key }) => ofSimulation(key)),
    ...working.flatMap((one) => [...ofKey(one), ...ofWhitelist(one)]),
  ];
  if (working.length === 0) return [...findings, warn('keys', 'no key works', 'rankd key create NAME')];
  return findings.length > 0 ? findings : [ok('keys', `${counted(inspections.length, 'key')}, no problems`)];
}

function ofSimulation({ name }: Key): Finding {
  const fix = `if a game uses it: rankd key adopt ${name}; if not: rankd key revoke ${name}`;
  return warn('keys', `${name} was created on the simulated group and is not accepted on the real one`, fix);
}

function ofKey({ key, isUnused, expiresSoon, retiring }: KeyInspection): Finding[] {
  const { name, expiresAt, pausedAt } = key;
  const findings: Finding[] = [];
  if (retiring?.lastUsedAt !== undefined && retiring.expiresAt !== undefined) {
    const isPlace = retiring.lastPlaceId !== undefined;
    const text = `the old secret of ${name} expires at ${isoTime(retiring.expiresAt)}; it was last used ${isPlace ? `from place ${retiring.lastPlaceId} ` : ''}at ${isoTime(retiring.lastUsedAt)}`;
    findings.push(
      warn(
        'keys',
        text,
        isPlace
          ? 'restart the servers of that game (Creator Dashboard: Restart servers): running ones still use the old secret'
          : 'give the new secret to the program that uses it',
      ),
    );
  }
  if (pausedAt !== undefined) findings.push(warn('keys', `${name} is paused`, `rankd key resume ${name}`));
  if (isUnused) findings.push(warn('keys', `${name} was never used`, `if nothing needs it: rankd key revoke ${name}`));
  if (expiresSoon && expiresAt !== undefined) {
    findings.push(warn('keys', `${name} expires on ${isoDay(expiresAt)}`, replacementOf(key)));
  }
  return findings;
}

function replacementOf({ isForDiscord, isAnyPlace }: Key): string {
  if (isForDiscord) return 'rankd key create NAME --for-discord, then name it in discord.commands';
  if (isAnyPlace) return 'rankd key create NAME --any-place, then give the new key to the program that uses it';
  return 'create a new key (rankd key create NAME), whitelist the same places for it, then put it into the game';
}

function ofWhitelist({ key: { name, isAnyPlace }, hasPlace, unlistedPlaces }: KeyInspection): Finding[] {
  if (isAnyPlace) {
    const fix = `unless a bot or an online shop uses it, whitelist the game's places, then: rankd key set ${name} --no-any-place`;
    return [warn('whitelist', `${name} needs no place: anyone who has it can use it from anywhere`, fix)];
  }
  if (!hasPlace)
    return [
      warn('whitelist', `${name} has no active place on its whitelist`, `rankd whitelist add PLACE --key ${name}`),
    ];
  return unlistedPlaces.map((place) => (place === 0 ? unpublished(name) : unlisted(name, place)));
}

function unpublished(key: string): Finding {
  return warn(
    'whitelist',
    `a game sends ${key} from place 0: it runs in Studio and was never published`,
    `publish the game from Roblox Studio, then: rankd whitelist add PLACE --key ${key}`,
  );
}

/**
 * Warns about a place that is not whitelisted. An entry may contain the game's universe id by mistake, which never
 * matches the place id that games send.
 */
function unlisted(key: string, place: number): Finding {
  return warn(
    'whitelist',
    `a game sends ${key} from place ${place}, which is not listed (an entry may be its universe id instead)`,
    `rankd whitelist add ${place} --key ${key}`,
  );
}

export function webhookFindings(views: readonly WebhookView[]): Finding[] {
  const findings = views.flatMap(({ webhook: { name, state, why, failingSince, lastError }, backlog }) => {
    if (state === 'disabled') return [fail('webhooks', `${name} is disabled: ${why}`, `rankd webhook enable ${name}`)];
    if (failingSince === undefined) return [];
    const text = `${name} has received nothing since ${isoTime(failingSince)}, ${waitingText(backlog)}: ${lastError}`;
    return [warn('webhooks', text, `rankd webhook test ${name}`)];
  });
  return findings.length > 0 || views.length === 0
    ? findings
    : [ok('webhooks', `${counted(views.length, 'webhook')}, no problems`)];
}

export function daemonFindings(daemon: DaemonStatus | undefined): Finding[] {
  if (daemon === undefined) return [];
  if (daemon.storeProblem === null) return [ok('daemon', `is using this database (pid ${daemon.pid})`)];
  return [
    fail(
      'daemon',
      daemon.storeProblem,
      "with PostgreSQL, check the daemon's connection to the server; otherwise stop the daemon, check the files in the data directory, then start it again",
    ),
  ];
}
