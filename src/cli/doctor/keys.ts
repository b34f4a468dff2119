import { keyState } from '../../core/access.ts';
import type { AuditEvent, Key, WhitelistEntry } from '../../core/model.ts';
import type { Store } from '../../ports/index.ts';
import { type Finding, ok, warn } from './finding.ts';

const dayMs = 86_400_000;
const unusedNoticeMs = 7 * dayMs;
const expiryNoticeMs = 14 * dayMs;
const refusalsLookedAt = 1_000;

/** What is odd about the workspace. */
export async function workspaceFindings(store: Pick<Store, 'getWorkspace'>): Promise<Finding[]> {
  const { active, plan } = await store.getWorkspace();
  return [
    ...(active ? [] : [warn('workspace', 'suspended: every key is refused', 'rankd workspace resume')]),
    ...(plan === 'top'
      ? []
      : [warn('workspace', 'not on the top plan: no key is accepted', 'rankd workspace plan top')]),
  ];
}

/** What is odd about the keys that still work, and about their whitelists. */
export async function keyFindings(
  store: Pick<Store, 'listKeys' | 'listEntries' | 'listAudit'>,
  now: number,
): Promise<Finding[]> {
  const keys = (await store.listKeys()).filter((key) => ['active', 'rotating'].includes(keyState(key, now)));
  if (keys.length === 0) return [warn('keys', 'there is no key that works', 'rankd key create NAME')];
  const entries = await store.listEntries({});
  const recently = { since: now - unusedNoticeMs, limit: refusalsLookedAt };
  const refused = await store.listAudit({ ...recently, action: 'caller.refused', subject: 'place_not_whitelisted' });
  const findings = keys.flatMap((key) => [
    ...ofKey(key, now),
    ...ofWhitelist(
      key,
      entries.filter(({ keyId }) => keyId === key.id),
      refused,
    ),
  ]);
  return findings.length > 0 ? findings : [ok('keys', `${keys.length} in order`)];
}

function ofKey({ name, createdAt, expiresAt, pausedAt, secrets }: Key, now: number): Finding[] {
  const isUsed = secrets.some(({ lastUsedAt }) => lastUsedAt !== undefined);
  const findings: Finding[] = [];
  if (pausedAt !== undefined) findings.push(warn('keys', `${name} is paused`, `rankd key resume ${name}`));
  if (!isUsed && now - createdAt > unusedNoticeMs) {
    findings.push(warn('keys', `${name} was never used`, `rankd key revoke ${name}, if no game needs it`));
  }
  if (expiresAt !== undefined && expiresAt - now < expiryNoticeMs) {
    const day = new Date(expiresAt).toISOString().slice(0, 10);
    findings.push(warn('keys', `${name} expires on ${day}`, 'rankd key create NAME, and put it into the game'));
  }
  return findings;
}

/** Games send the id of the place, so no request matches an entry that has the id of the universe. */
function ofWhitelist({ id, name }: Key, entries: WhitelistEntry[], refused: AuditEvent[]): Finding[] {
  if (!entries.some(({ active }) => active)) {
    return [warn('whitelist', `${name} works from no place`, `rankd whitelist add PLACE --key ${name}`)];
  }
  const ofThisKey = refused.filter(({ detail }) => detail['keyId'] === id);
  const places = new Set(ofThisKey.map(({ detail }) => Number(detail['placeId'])));
  return [...places]
    .filter((place) => !entries.some(({ placeId }) => placeId === place))
    .map((place) => (place === 0 ? unpublished(name) : unlisted(name, place)));
}

function unpublished(key: string): Finding {
  return warn(
    'whitelist',
    `a game sends ${key} from place 0: it runs in Studio and was never published`,
    `publish the game from Roblox Studio, then: rankd whitelist add PLACE --key ${key}`,
  );
}

function unlisted(key: string, place: number): Finding {
  return warn(
    'whitelist',
    `a game sends ${key} from place ${place}, which is not listed (an entry may be its universe id instead)`,
    `rankd whitelist add ${place} --key ${key}`,
  );
}
