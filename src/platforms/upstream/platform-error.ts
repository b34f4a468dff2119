import type { ConnectionFailure } from '../../base/connection-cause.ts';
import { RankdError, type RankdErrorOptions } from '../../base/errors.ts';
import { refusedKey } from '../../core/credential.ts';
import { problemOf } from './problem.ts';

/** An answer of the platform that is not a success. */
export interface Refusal {
  status: number;
  body: string;
  /** How long the platform asks us to wait; absent if it does not say. */
  retryAfterMs?: number | undefined;
}

/** How long to wait before another try if the platform is down and does not say itself. */
const recoveryMs = 5_000;

/**
 * True if a later try of the same call can succeed. Source: Open Cloud's page on errors; and for the texts, which come with other
 * statuses too, clients that were seen to retry them: `FailedToAcquireLock`, `TooManyRequests`, `Migration in progress. Please try again`.
 */
export function isTransient(refusal: Words): boolean {
  const { status } = refusal;
  if (isBusy(refusal) || [408, 409, 499].includes(status) || (status >= 500 && status !== 501)) return true;
  return status !== 401 && (isLocked(refusal) || /try again|migration in progress/i.test(wordsOf(refusal)));
}

/** True if the platform wants fewer calls. */
export function isBusy(refusal: Words): boolean {
  return refusal.status === 429 || (refusal.status !== 401 && /too ?many ?requests/i.test(wordsOf(refusal)));
}

/** True if another request about the same thing holds a lock. */
export function isLocked(refusal: Words): boolean {
  return /acquire ?lock/i.test(wordsOf(refusal));
}

type Words = Pick<Refusal, 'status' | 'body'>;

function wordsOf({ body }: Words): string {
  const { code = '', message } = problemOf(body);
  return `${code} ${message}`;
}

/**
 * The RankdError for an answer that is not a success. For a write, every code but `outcome_unknown` says that the platform did
 * not carry it out. What a later try can end differently is `outcome_unknown`, except for `platform_busy`: it can be sent after the write was carried out.
 */
export function platformError(refusal: Refusal, { isWrite }: { isWrite: boolean }): RankdError {
  const { status, retryAfterMs } = refusal;
  if (status === 401) return new RefusedKey(refusal);
  if (isBusy(refusal)) return busy(refusal);
  if (isTransient(refusal) || status >= 500)
    return isWrite ? unknownOutcome(said(refusal)) : unavailable(said(refusal), retryAfterMs);
  if (status === 403) return isWrite ? forbiddenWrite(refusal) : new ForbiddenRead(refusal);
  if (isWrite && isAboutBaseRole(refusal)) return new BaseRoleError(refusal);
  if (isWrite && isAboutMember(refusal)) return memberNotFound(refusal);
  return rejected(refusal);
}

/** The error of a write whose role turns out to be the base role, which rankd never writes knowingly. */
export class BaseRoleError extends RankdError {
  constructor(refusal: Refusal) {
    super('platform_rejected', `Roblox says that this role is the one that every member has (${said(refusal)}).`, {
      hint: 'try again in half a minute: rankd knows it now, and never gives or takes that role',
    });
  }
}

/** The error of a read that the platform forbids, which is not the key's fault by itself. */
export class ForbiddenRead extends RankdError {
  constructor(refusal: Refusal) {
    super('platform_credential', `The Roblox key may not read this (${said(refusal)}).`, {
      hint: 'check that the group is not locked, and on the Creator Dashboard that the key allows this address and has group:read for the group',
    });
  }
}

/** The error of a write that may have reached the platform, and whose effect no answer tells. */
export function unknownOutcome(what: string, rest: Pick<RankdErrorOptions, 'cause' | 'connection'> = {}): RankdError {
  const message = `The change was sent to Roblox, but it is not known whether it was carried out: ${what}.`;
  return new RankdError('outcome_unknown', message, rest);
}

/** The error of a call that reached nobody and changed nothing. */
export function unreached({ words, hint, cause: connection }: ConnectionFailure, cause: unknown): RankdError {
  const message = `Roblox can't be reached: ${words}. Nothing was changed.`;
  return new RankdError('platform_unavailable', message, { retryAfterMs: recoveryMs, hint, connection, cause });
}

/** The error of a read whose answer has another shape than rankd was built for. */
export function unfamiliar(flaws: string[], cause: unknown): RankdError {
  const shown = flaws.length > 0 ? ` (${flaws.slice(0, maxFlaws).join(', ')})` : '';
  const message = `Roblox's answer is not what rankd was built for${shown}. Nothing was changed.`;
  return new RankdError('platform_unavailable', message, {
    retryAfterMs: recoveryMs,
    hint: 'rankd doctor --live shows all that differs; then look for a newer rankd',
    cause,
  });
}

const maxFlaws = 3;

/** The error of a call that got no usable answer and changed nothing. */
export function unavailable(what: string, retryAfterMs = recoveryMs, cause?: unknown): RankdError {
  const message = `Roblox gives no usable answer right now (${what}). Nothing was changed; try again later.`;
  return new RankdError('platform_unavailable', message, { retryAfterMs, cause });
}

/** The error of a call that the platform refuses for the key's sake. */
export class RefusedKey extends RankdError {
  /** The platform's own words. */
  readonly refusal: string;

  constructor(refusal: Refusal) {
    const words = said(refusal);
    const { message, hint } = refusedKey(words);
    super('platform_credential', message, { hint });
    this.refusal = words;
  }
}

/** A 403 that says "permission denied" is about the acting account's power. Other 403s are about the key, the address or a challenge. */
function forbiddenWrite(refusal: Refusal): RankdError {
  const { code = '', message } = problemOf(refusal.body);
  if (!/^permission_denied$/i.test(code) && !/\bnot have permission\b/i.test(message)) return new RefusedKey(refusal);
  return new RankdError(
    'above_acting_account',
    'Roblox does not let the acting account make this change. It needs the permission "Manage lower-ranked member ranks", ' +
      `a rank above both the member and the role, and a key with group:write (${said(refusal)}).`,
    { hint: 'give the acting account a higher role with that permission, and its key group:write for the group' },
  );
}

function busy({ retryAfterMs }: Refusal): RankdError {
  return limited('before it takes this again', retryAfterMs ?? recoveryMs);
}

/** The error of a call that Roblox's rate limit has no room for. `until`: what is waited for. */
export function limited(until: string, waitMs: number): RankdError {
  const retryAfterMs = Math.ceil(waitMs);
  const seconds = Math.ceil(retryAfterMs / 1000);
  const message = `Roblox asks us to wait ${seconds} s ${until}: its rate limit is used up.`;
  return new RankdError('platform_busy', message, { retryAfterMs });
}

function memberNotFound(refusal: Refusal): RankdError {
  return new RankdError('member_not_found', `The user is not a member of the group (${said(refusal)}).`);
}

function rejected(refusal: Refusal): RankdError {
  if (isAboutGroup(refusal))
    return new RankdError('platform_rejected', `Roblox knows no such group (${said(refusal)}).`, {
      hint: "set group.id to the number in the address of the group's page",
    });
  return new RankdError('platform_rejected', `Roblox rejected the request (${said(refusal)}).`, {
    hint: 'check that group.id is right and that the role still exists: `rankd group roles`',
  });
}

/** The text was seen by others: `Cannot assign a base role.` */
function isAboutBaseRole({ status, body }: Refusal): boolean {
  return status === 400 && /\bbase role\b/i.test(problemOf(body).message);
}

/**
 * True if the refusal means that the user is not in the group. Roblox does not document how it says so; 400 and 404 both occur.
 * A 404 in the platform's own words is about the member unless it names something else. A 400 is only if it names the user as the problem.
 */
function isAboutMember({ status, body }: Refusal): boolean {
  const { code, message } = problemOf(body);
  const namesMember = /\b(users?|members?|memberships?)\b/i.test(message);
  const namesOther = /\b(roles?|groups?)\b/i.test(message);
  if (status === 404) return namesMember || (code === 'NOT_FOUND' && !namesOther);
  return status === 400 && namesMember && !/\broles?\b/i.test(message) && complains.test(message);
}

function isAboutGroup({ status, body }: Refusal): boolean {
  const { message } = problemOf(body);
  return status === 404 && /\bgroup\b/i.test(message) && !/\b(users?|members?|memberships?|roles?)\b/i.test(message);
}

const complains = /\b(invalid|unknown|not (found|a|in|part))\b|n['’o]t exist/i;

/** What the platform said, ready to be shown, e.g. `403 PERMISSION_DENIED: …`. */
function said({ status, body }: Refusal): string {
  const { code, message } = problemOf(body);
  return `${[status, code].filter((part) => part !== undefined).join(' ')}${message === '' ? '' : `: ${message}`}`;
}
