import { InvalidArgumentError } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { asBaseUrl } from '../../base/net.ts';
import { parseDuration, parseMoment } from '../../base/time.ts';
import { isKeyName } from '../../core/api-key.ts';
import { maxReasonLength } from '../../core/model.ts';
import type { RoleName } from '../../core/role-scheme.ts';
import {
  experienceWords,
  idIn,
  idInAddress,
  namesExperience,
  type UserRef,
  userIn,
  userWords,
} from '../../core/user-ref.ts';

export const userHelp = 'user id, name, or address of the profile page';

// Parsers for arguments and options. commander adds the name of the argument or option to their errors.

export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

export function orNone<T>(parse: (text: string) => T): (text: string) => T | 'none' {
  return (text) => (text === 'none' ? text : parse(text));
}

/** Parses a user id, a user name or a profile address. A user name that is all digits needs an @ before it. */
export function asUser(text: string): UserRef {
  const user = userIn(text);
  if (user !== undefined) return user;
  throw new InvalidArgumentError(`It must be ${userWords}.`);
}

/** 0 means no user. */
export function asRanker(text: string): UserRef {
  return text === '0' ? 0 : asUser(text);
}

export const asGroupId = idOf('group', "a group id, or the address of the group's page");
const asPublishedId = idOf('place', "a place id, the address of the game's page, or a universe id");

export function asPlaceId(text: string): number {
  if (namesExperience(text)) throw new InvalidArgumentError(`${experienceWords}.`);
  if (text !== '0') return asPublishedId(text);
  throw new InvalidArgumentError('A game that was never published sends 0: publish it, then use its place id.');
}

export function asUniverseId(text: string): number {
  const id = idIn(text) ?? idInAddress('experience', text);
  if (id !== undefined) return id;
  throw new InvalidArgumentError(
    "It must be a universe id, or the address of the experience's page on the Creator Dashboard.",
  );
}

function idOf(kind: 'group' | 'place', what: string): (text: string) => number {
  return (text) => {
    const id = idIn(text) ?? idInAddress(kind, text);
    if (id !== undefined) return id;
    throw new InvalidArgumentError(`It must be ${what}.`);
  };
}

/** Parses a rank, role id or role name. Accepts 0, because the refusal of that rank lists the group's ranks. */
export function asRank(text: string): RoleName {
  const rank = text === '0' ? 0 : idIn(text);
  if (rank !== undefined) return rank;
  if (/\D/.test(text.trim()) && !/^-\d+$/.test(text) && text.length <= maxRoleName) return text;
  throw new InvalidArgumentError(
    'It must be a rank number (1..255), a role id or the name of a role, as `rankd group roles` lists them.',
  );
}

/** No role name is longer. */
const maxRoleName = 100;

export function asBound(text: string): RoleName {
  return /^-?\d*$/.test(text) ? wholeNumber(1, 254)(text) : asRank(text);
}

/** Parses a duration into milliseconds. */
export function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms <= maxMs) return ms;
  throw new InvalidArgumentError('It must be a duration of at most 36500d, such as 30s, 5m, 24h or 90d.');
}

/** Parses a duration into milliseconds. Rejects zero, because a key that expires immediately would be useless. */
export function lifetime(text: string): number {
  const ms = duration(text);
  if (ms > 0) return ms;
  throw new InvalidArgumentError('It must be longer than 0s, such as 24h or 90d.');
}

/** A hundred years, so that every date format can show the resulting date. */
const maxMs = 36_500 * 86_400_000;

/** Parses a date, a time in UTC or with an offset, or a duration before now, into epoch milliseconds. */
export function moment(text: string): number {
  const ago = parseDuration(text);
  const at = ago === undefined ? parseMoment(text) : systemClock.now() - ago;
  if (at !== undefined) return at;
  throw new InvalidArgumentError(
    'It must be a duration such as 24h (that long ago), a date such as 2026-05-01, or a time such as 2026-05-01T18:00Z.',
  );
}

/** Rejects an empty period, because an empty result would look like good news. */
export function refuseEmptyPeriod({ since, until }: { since?: number | undefined; until?: number | undefined }): void {
  if (since === undefined || until === undefined || since < until) return;
  throw new RankdError('usage', '--since must be before --until.', {
    hint: '--since 2h --until 1h means from two hours ago to one hour ago',
  });
}

export function asReason(text: string): string {
  const count = [...nonEmpty(text)].length;
  if (count <= maxReasonLength) return text;
  throw new InvalidArgumentError(`It has ${count} characters; the limit is ${maxReasonLength}.`);
}

export function nonEmpty(text: string): string {
  if (text !== '') return text;
  throw new InvalidArgumentError('It must not be empty.');
}

export function asGameUrl(text: string): string {
  const url = asBaseUrl(text.includes('://') ? text : `https://${text}`);
  if (url !== undefined) return url;
  throw new InvalidArgumentError(
    'It must be an https address without user, query or fragment, such as https://rankd.example.com.',
  );
}

/** Rejects `-`, because most commands print to standard output anyway if no file is named. */
export function newFileName(text: string): string {
  if (text !== '' && text !== '-') return text;
  throw new InvalidArgumentError('It must be the name of a new file.');
}

export function keyName(text: string): string {
  if (isKeyName(text)) return text;
  throw new InvalidArgumentError(
    'It must be 1 to 64 letters, digits, dots, dashes or underscores, and begin with a letter or digit. The key itself is never its name.',
  );
}
