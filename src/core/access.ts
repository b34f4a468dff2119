import { RankdError, type RefusalDetails } from '../base/errors.ts';
import { originHint } from './describe.ts';
import { isSimulatedGroup } from './group-title.ts';
import type { Key, KeyRecord, KeyState, Scope } from './model.ts';

/** The request to check. `now` is in epoch milliseconds. */
export interface AccessQuestion {
  scope: Scope;
  /** The group's title; `undefined` if unknown. */
  group: string | undefined;
  /** `undefined` if the request names no place. */
  placeId: number | undefined;
  now: number;
  /** A substitute for `placeRefusal` that can return a cached refusal. */
  refusePlace?: typeof placeRefusal;
}

/**
 * The place id that an unpublished game in Studio sends; rankd also uses it for requests without a place. No whitelist
 * can contain it.
 */
export const noPlace = 0;

export type Caller = Omit<KeyRecord, 'secretId'>;

interface AccessCheck {
  /** The name of the check in the output of `rank test`. */
  name: string;
  refusal(caller: Caller, question: AccessQuestion): RankdError | undefined;
}

/** The conditions that a caller with a known key must meet, in the order in which they are checked. */
export const accessChecks: readonly AccessCheck[] = [
  {
    name: 'workspace',
    refusal({ workspace, key }) {
      if (!workspace.active)
        return invalidKey({ reason: 'workspace_suspended', keyId: key.id }, 'rankd workspace resume');
      if (workspace.plan !== 'top')
        return invalidKey({ reason: 'not_top_plan', keyId: key.id }, 'rankd workspace plan top');
      return undefined;
    },
  },
  {
    name: 'key',
    refusal({ key, retiring }, { group, now }) {
      const state = keyState(key, now);
      if (state === 'revoked' || state === 'expired')
        return invalidKey({ reason: state, keyId: key.id }, 'rankd key create NAME');
      if (retiring !== undefined && retiring.until <= now)
        return invalidKey({ reason: 'rotated_out', keyId: key.id }, `rankd key rotate ${key.name}`);
      if (key.isSimulated && group !== undefined && !isSimulatedGroup(group))
        return invalidKey({ reason: 'simulated', keyId: key.id }, `rankd key adopt ${key.name}`);
      return undefined;
    },
  },
  {
    name: 'scope',
    refusal({ key }, { scope }) {
      if (key.scopes.includes(scope)) return undefined;
      return RankdError.withoutStack(
        'key_not_allowed',
        `This key lacks the ${scope} scope; it has only ${key.scopes.join(', ')}. Use a key with the ${scope} scope.`,
        {
          hint: `rankd key create NAME --scope ${[...key.scopes, scope].join(' ')}${key.isForDiscord ? ' --for-discord' : ''}`,
          details: { reason: 'missing_scope', keyId: key.id },
        },
      );
    },
  },
  {
    name: 'whitelist',
    refusal(caller, { placeId, refusePlace = placeRefusal }) {
      if (caller.entry?.active || caller.key.isAnyPlace || caller.key.isForDiscord) return undefined;
      return placeId === undefined ? withoutPlace(caller.key) : refusePlace(caller, placeId);
    },
  },
  {
    name: 'breaker',
    refusal({ key }, { scope }) {
      if (key.pausedAt === undefined || scope === 'verify') return undefined;
      return RankdError.withoutStack(
        'key_paused',
        `This key is paused: it changed many members in a short time, or the operator paused it. The operator can resume it with: rankd key resume ${key.name}`,
        {
          hint: `rankd history list --key ${key.name}, then: rankd key resume ${key.name}`,
          details: { reason: 'paused', keyId: key.id },
        },
      );
    },
  },
];

function withoutPlace({ id, name }: Key): RankdError {
  return RankdError.withoutStack(
    'missing_placeid',
    'Send the place id as ?placeid=, or send the request from a Roblox game server, which adds it; a bot needs a key made with --any-place.',
    { hint: `if no game uses the key: rankd key set ${name} --any-place`, details: { reason: 'no_place', keyId: id } },
  );
}

export function placeRefusal(caller: Caller, placeId: number): RankdError {
  return placeId === noPlace ? unpublished(caller.key) : notListed(caller, placeId);
}

function notListed({ key, entry }: Caller, placeId: number): RankdError {
  const reason = entry === undefined ? 'not_listed' : 'disabled';
  const what = entry === undefined ? 'not on the whitelist of this key' : 'on the whitelist of this key, but disabled';
  const command = entry === undefined ? 'add' : 'enable';
  return RankdError.withoutStack(
    'place_not_whitelisted',
    `Place ${placeId} is ${what}. The operator can change that with: rankd whitelist ${command} ${placeId} --key ${key.name}`,
    { hint: `rankd whitelist ${command} ${placeId} --key ${key.name}`, details: { reason, keyId: key.id, placeId } },
  );
}

function unpublished({ id, name }: Key): RankdError {
  return RankdError.withoutStack(
    'place_not_whitelisted',
    'Place 0 is not a place: a game that runs in Studio and was never published sends it. Publish the game, then whitelist its place id.',
    {
      hint: `publish the game from Roblox Studio, then: rankd whitelist add PLACE --key ${name}`,
      details: { reason: 'unpublished', keyId: id, placeId: noPlace },
    },
  );
}

export function refusalOf(caller: Caller, question: AccessQuestion): RankdError | undefined {
  for (const check of accessChecks) {
    const refusal = check.refusal(caller, question);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

export function keyState(key: Key, now: number): KeyState {
  if (key.revokedAt !== undefined) return 'revoked';
  if (key.expiresAt !== undefined && key.expiresAt <= now) return 'expired';
  return key.secrets.some((secret) => secret.expiresAt !== undefined && secret.expiresAt > now) ? 'rotating' : 'active';
}

/** Returns the refusal for a secret whose prefix, `rk_live_` or `rk_test_`, does not match its key's mode. */
export function wrongMode({ id, name, mode }: Key): RankdError {
  return invalidKey({ reason: 'wrong_mode', keyId: id, mode }, `rankd key show ${name}`);
}

/**
 * Returns the refusal for an invalid key. The message is the same for every reason, so that a caller can't find out
 * which keys exist. Only the operator can see the reason: in the daemon's log, in the audit log and with commands such
 * as `rankd key verify`.
 */
export function invalidKey(details: RefusalDetails, hint: string): RankdError {
  return RankdError.withoutStack(
    'invalid_key',
    'This game key is not accepted. Send the whole key, as in its file and without quotes. Check the file: rankd key verify - < my-game.key',
    { details, hint },
  );
}

/**
 * Returns the refusal if the Roblox-Id header does not match the place that the request names.
 *
 * Roblox adds this header, with the place id, to every request from a game server, and scripts cannot set it. Other
 * clients can, so the header tells games apart but authenticates no one. Source: the HttpService documentation.
 */
export function refusalOfRobloxId({ header, placeId }: RobloxIdClaim): RankdError | undefined {
  if (header === String(placeId)) return undefined;
  const found =
    header === ''
      ? 'it has no Roblox-Id header, which every game server sends'
      : `its Roblox-Id header ${/^\d{1,16}$/.test(header) ? `names place ${header}` : 'is not a place id'}`;
  return RankdError.withoutStack(
    'place_not_whitelisted',
    `The request names place ${placeId}, but ${found}: security.roblox_id is enforce. Send game.PlaceId, not a universe id.`,
    {
      hint: `whitelist the id of each place, or set security.roblox_id to warn ${originHint}`,
      details: { reason: 'roblox_id_mismatch', placeId },
    },
  );
}

interface RobloxIdClaim {
  /** Empty if the request has no such header. */
  header: string;
  placeId: number;
}
