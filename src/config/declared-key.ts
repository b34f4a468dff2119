import * as z from 'zod';
import { parseMoment } from '../base/time.ts';
import { isKeyName, withoutKeys } from '../core/api-key.ts';
import { directions, type KeyDeclaration, type KeyRules, scopes, usualScopes } from '../core/model.ts';
import { ids, oneOf, trueOrFalse, wholeNumberBetween } from './values.ts';

export interface DeclaredKey extends KeyDeclaration {
  /** The locations of the key's name and hash: `file:line:col`, or the variable that declares the key. */
  at: { name: string; hash: string };
}

const hashOrDiscord = 'either a hash, or for_discord: true for a key without a secret';

const nameError =
  '1 to 64 letters, digits, dots, dashes or underscores, the first a letter or digit; never the secret itself';
const hashError = 'the 64 hex digits that `rankd key hash -` prints; never the secret itself';
const timeError = 'a date, or a time with a UTC offset, such as "2027-01-31T00:00:00Z"';

export const declaredKey = z
  .strictObject(
    {
      name: z
        .string({ error: nameError })
        .refine(isKeyName, { error: nameError })
        .describe('Name of the key in commands.'),
      hash: z
        .string({ error: hashError })
        .regex(/^[\da-f]{64}$/, { error: hashError })
        .optional()
        .describe(
          'SHA-256 of the secret in hex, as `rankd key hash` prints it; required unless the key is for Discord.',
        ),
      for_discord: trueOrFalse()
        .default(false)
        .describe('true for a key without a secret that is for commands on Discord (see `discord.commands`).'),
      mode: oneOf(['live', 'test'])
        .default('live')
        .describe('live, or test for an rk_test_ secret: every check runs, but nothing changes.'),
      scopes: z
        .array(oneOf(scopes), { error: 'a list of scopes' })
        .min(1, { error: 'at least one scope' })
        .default([...usualScopes])
        .describe('Actions that the key allows.'),
      expires_at: z
        .string({ error: timeError })
        .refine((text) => parseMoment(text) !== undefined, { error: timeError, abort: true })
        .transform(parseMoment)
        .optional()
        .describe('Date, or time with a UTC offset, at which the key expires; without it, the key never expires.'),
      max_rank: wholeNumberBetween(1, 254).optional().describe('The key changes nothing above this rank.'),
      min_rank: wholeNumberBetween(1, 254).optional().describe('The key changes nothing below this rank.'),
      direction: oneOf(directions).optional().describe('promote: the key can only rank members up; demote: only down.'),
      self_rank: oneOf(['allow', 'deny'])
        .default('allow')
        .describe('deny: players may not rank themselves with this key; allow: policy.self_rank decides.'),
      system: trueOrFalse()
        .default(false)
        .describe(
          'Whether the key is for a game that ranks automatically: policy.ranker_check then requires no player as the ranker.',
        ),
      privileged: trueOrFalse()
        .default(false)
        .describe('Whether the key may give and take roles that policy.privileged_roles reserves for the operator.'),
      any_place: trueOrFalse()
        .default(false)
        .describe('Whether the key works without a whitelist, for a bot or an online shop; never set this for a game.'),
      rate: wholeNumberBetween(1, 1_000_000).optional().describe('Rank requests per minute, instead of limits.rank.'),
      whitelist: ids().default([]).describe('Ids of the places or universes that may use the key.'),
    },
    { error: 'a mapping with name and hash' },
  )
  .check(({ value, issues }) => {
    if (issues.length > 0) return;
    const { hash, for_discord, system } = value;
    if ((hash === undefined) !== for_discord)
      issues.push({ code: 'custom', path: ['hash'], input: hash, message: hashOrDiscord });
    if (for_discord && system)
      issues.push({
        code: 'custom',
        path: ['system'],
        input: system,
        message: 'false for a key for Discord, where a person is behind every change',
      });
  })
  .check(({ value, issues }) => {
    if (issues.length > 0 || value.min_rank === undefined || value.min_rank <= (value.max_rank ?? 255)) return;
    const message = `a rank up to max_rank, which is ${value.max_rank}`;
    issues.push({ code: 'custom', path: ['min_rank'], input: value.min_rank, message });
  });

export type DeclaredKeySettings = z.output<typeof declaredKey>;

/** `at` returns the location of one of the entry's settings. */
export function toDeclaredKey(settings: DeclaredKeySettings, at: (...path: PropertyKey[]) => string): DeclaredKey {
  const { name, hash, mode, scopes, expires_at, whitelist } = settings;
  return {
    name,
    ...(hash !== undefined && { hash }),
    mode,
    scopes: [...new Set(scopes)],
    rules: rulesIn(settings),
    ...(expires_at !== undefined && { expiresAt: expires_at }),
    declaredIn: lineOf(at()),
    whitelist: { placeIds: [...new Set(whitelist)], declaredIn: lineOf(at('whitelist')) },
    at: { name: at('name'), hash: at('hash') },
  };
}

function rulesIn(settings: DeclaredKeySettings): KeyRules {
  const { max_rank, min_rank, direction, self_rank, system, privileged, any_place, rate, for_discord } = settings;
  return {
    ...(max_rank !== undefined && { maxRank: max_rank }),
    ...(min_rank !== undefined && { minRank: min_rank }),
    ...(direction !== undefined && { direction }),
    ...(self_rank === 'deny' && { selfRank: self_rank }),
    ...(system && { isSystem: system }),
    ...(privileged && { isPrivileged: privileged }),
    ...(any_place && { isAnyPlace: any_place }),
    ...(rate !== undefined && { ratePerMinute: rate }),
    ...(for_discord && { isForDiscord: true }),
  };
}

/** Drops the column: `rankd.yaml:31:5` → `rankd.yaml:31`. */
function lineOf(location: string): string {
  return withoutKeys(location.replace(/:\d+$/, ''));
}
