import type { ConnectionFailure } from '../../base/connection-cause.ts';
import { RankdError, type RankdErrorOptions } from '../../base/errors.ts';
import { shorten } from '../../base/text.ts';
import { refusedKey } from '../../core/credential.ts';
import type { Answer } from './answer.ts';

export interface Refusal {
  status: number;
  body: string;
  retryAfterMs?: number | undefined;
}

/** The wait before the next attempt if the platform is down and does not request one. */
const recoveryMs = 5_000;

/**
 * True if retrying the same call can succeed. Source: Open Cloud's page on errors. As in other clients, this includes
 * any response, except a 401, that contains `FailedToAcquireLock`, `TooManyRequests`, `try again` or
 * `Migration in progress`.
 */
export function isTransient(refusal: Words): boolean {
  const { status } = refusal;
  if (isBusy(refusal) || [408, 409, 499].includes(status) || (status >= 500 && status !== 501)) return true;
  return status !== 401 && (isLocked(refusal) || /try again|migration in progress/i.test(wordsOf(refusal)));
}

export function isBusy(refusal: Words): boolean {
  return refusal.status === 429 || (refusal.status !== 401 && /too ?many ?requests/i.test(wordsOf(refusal)));
}

export function isLocked(refusal: Words): boolean {
  return /acquire ?lock/i.test(wordsOf(refusal));
}

type Words = Pick<Refusal, 'status' | 'body'>;

function wordsOf({ body }: Words): string {
  const { code = '', message } = problemOf(body);
  return `${code} ${message}`;
}

/**
 * Returns the RankdError for an unsuccessful response. For a write, every code except `outcome_unknown` means that the
 * platform did not apply it. A 5xx response or a transient refusal (other than `platform_busy`) becomes
 * `outcome_unknown`, because the platform may send it after applying the write.
 */
export function platformError(refusal: Refusal, { isWrite }: { isWrite: boolean }): RankdError {
  const { status, retryAfterMs } = refusal;
  if (status === 401) return new RefusedKey(refusal);
  if (isBusy(refusal)) return busy(refusal);
  if (isTransient(refusal) || status >= 500)
    return isWrite ? unknownOutcome(quote(refusal)) : unavailable(quote(refusal), retryAfterMs);
  if (status === 403) return isWrite ? forbiddenWrite(refusal) : new ForbiddenRead(refusal);
  if (isWrite && isAboutBaseRole(refusal)) return new BaseRoleError(refusal);
  if (isWrite && isAboutMember(refusal)) return memberNotFound(refusal);
  return rejected(refusal);
}

/** Thrown when Roblox reports that rankd tried to give or take the base role, which rankd never does knowingly. */
export class BaseRoleError extends RankdError {
  constructor(refusal: Refusal) {
    super('platform_rejected', `Roblox reports that every member has this role (${quote(refusal)}).`, {
      hint: 'try again in half a minute: rankd now knows that it must not give or take that role',
    });
  }
}

/** The error for a read that the platform forbids. The key may still be valid. */
export class ForbiddenRead extends RankdError {
  constructor(refusal: Refusal) {
    super('platform_credential', `The Roblox key is not allowed to read this (${quote(refusal)}).`, {
      hint: 'check that the group is not locked; on the Creator Dashboard, check that the key allows this address and has group:read for the group',
    });
  }
}

/** Returns the error for a write that may have reached the platform but got no response that confirms the outcome. */
export function unknownOutcome(what: string, rest: Pick<RankdErrorOptions, 'cause' | 'connection'> = {}): RankdError {
  const message = `The change was sent to Roblox, but its outcome is unknown: ${what}.`;
  return new RankdError('outcome_unknown', message, rest);
}

export function unreached({ words, hint, cause: connection }: ConnectionFailure, cause: unknown): RankdError {
  const message = `Roblox can't be reached: ${words}. Nothing was changed.`;
  return new RankdError('platform_unavailable', message, { retryAfterMs: recoveryMs, hint, connection, cause });
}

export function unfamiliar(flaws: string[], cause: unknown): RankdError {
  const shown = flaws.length > 0 ? ` (${flaws.slice(0, maxFlaws).join(', ')})` : '';
  const message = `Roblox's response has an unexpected shape${shown}. Nothing was changed.`;
  return new RankdError('platform_unavailable', message, {
    retryAfterMs: recoveryMs,
    hint: 'run rankd doctor --live to see all differences, then check for a newer rankd',
    cause,
  });
}

const maxFlaws = 3;

export function unavailable(what: string, retryAfterMs = recoveryMs, cause?: unknown): RankdError {
  const message = `Roblox gave no usable response (${what}). Nothing was changed; try again later.`;
  return new RankdError('platform_unavailable', message, { retryAfterMs, cause });
}

export class RefusedKey extends RankdError {
  /** The refusal as the platform phrased it. */
  readonly refusal: string;

  constructor(refusal: Refusal) {
    const words = quote(refusal);
    const { message, hint } = refusedKey(words);
    super('platform_credential', message, { hint });
    this.refusal = words;
  }
}

/**
 * Returns the error for a write refused with 403. "Permission denied" is about the acting account's permissions; any
 * other 403 is about the key, this machine's IP address or a challenge.
 */
function forbiddenWrite(refusal: Refusal): RankdError {
  const { code = '', message } = problemOf(refusal.body);
  if (!/^permission_denied$/i.test(code) && !/\bnot have permission\b/i.test(message)) return new RefusedKey(refusal);
  return new RankdError(
    'above_acting_account',
    'Roblox does not let the acting account make this change. It needs the permission "Manage lower-ranked member ranks", ' +
      `a rank above both the member and the role, and a key with group:write (${quote(refusal)}).`,
    { hint: 'give the acting account a higher role with that permission, and its key group:write for the group' },
  );
}

function busy({ retryAfterMs }: Refusal): RankdError {
  return limited(retryAfterMs ?? recoveryMs);
}

/** Returns the error for calls beyond Roblox's rate limit. `calls` names them, e.g. `giving roles`. */
export function limited(waitMs: number, calls?: string): RankdError {
  const which = calls === undefined ? '' : ` for ${calls}`;
  const retryAfterMs = Math.ceil(waitMs);
  const seconds = Math.ceil(retryAfterMs / 1000);
  const message = `Roblox's rate limit${which} is used up; rankd can try again in ${seconds} s.`;
  return new RankdError('platform_busy', message, { retryAfterMs });
}

function memberNotFound(refusal: Refusal): RankdError {
  return new RankdError('member_not_found', `The user is not a member of the group (${quote(refusal)}).`);
}

function rejected(refusal: Refusal): RankdError {
  if (isAboutGroup(refusal))
    return new RankdError('platform_rejected', `Roblox has no such group (${quote(refusal)}).`, {
      hint: "set group.id to the number in the address of the group's page",
    });
  return new RankdError('platform_rejected', `Roblox rejected the request (${quote(refusal)}).`, {
    hint: 'check that group.id is right and that the role still exists: `rankd group roles`',
  });
}

/** True for a refusal such as `Cannot assign a base role.`, which other developers have observed. */
function isAboutBaseRole({ status, body }: Refusal): boolean {
  return status === 400 && /\bbase role\b/i.test(problemOf(body).message);
}

/**
 * True if the refusal means that the user is not in the group. Roblox does not document this refusal; 400 and 404 both
 * occur. A 404 concerns the member if it names the user, or if it has the code NOT_FOUND and names no role or group. A
 * 400 concerns the member only if it names the user as the problem.
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

const complains = /\b(invalid|unknown|not (found|a|in|part))\b|n['\u2019o]t exist/i;

/** Returns the refusal as quoted in an error, e.g. `403 PERMISSION_DENIED: …`. */
function quote({ status, body }: Refusal): string {
  const { code, message } = problemOf(body);
  return `${[status, code].filter((part) => part !== undefined).join(' ')}${message === '' ? '' : `: ${message}`}`;
}

/**
 * The statuses and codes that Open Cloud's page on errors documents; 502 and 504 come from the gateways in front of
 * Open Cloud.
 */
const statuses = new Set([200, 400, 401, 403, 404, 409, 429, 499, 500, 501, 502, 503, 504]);
const codes = new Set([
  ...['INVALID_ARGUMENT', 'PERMISSION_DENIED', 'NOT_FOUND', 'ABORTED', 'RESOURCE_EXHAUSTED'],
  ...['CANCELLED', 'INTERNAL', 'NOT_IMPLEMENTED', 'UNAVAILABLE'],
  ...['0', '1'], // 0 comes from the gateway, 1 from the public host for a group that does not exist
]);

/**
 * Returns a response's status and error code if they are undocumented. The caller must have masked the key in `body`.
 */
export function surprisesIn({ status, body = '' }: Pick<Answer, 'status' | 'body'>): string[] {
  const isSuccess = status >= 200 && status < 300;
  const code = isSuccess ? undefined : problemOf(body).code;
  return [
    ...(statuses.has(status) ? [] : [`status ${status}`]),
    ...(code === undefined || codes.has(code) ? [] : [`code ${/^\w{1,40}$/.test(code) ? code : '?'}`]),
  ];
}

interface Problem {
  /** e.g. `PERMISSION_DENIED`, or a number as text; absent if the format has none. */
  code: string | undefined;
  message: string;
}

const maxMessageLength = 200;

/**
 * Reads an error body in any of these formats: the gateway's `errors` list, the v2 form (`code`, `message`), the older
 * form (`error`, `message`), or a problem document (`title`). The text of a body that is not JSON becomes the message,
 * unless the body is a web page. Source: Open Cloud's page on errors.
 */
function problemOf(body: string): Problem {
  const json = parse(body);
  if (json === undefined)
    return { code: undefined, message: isPage(body) ? 'a web page instead of JSON' : sanitized(body) };
  const errors = json['errors'];
  const first = Array.isArray(errors) ? record(errors[0]) : undefined;
  if (first !== undefined) return problem(first['code'], first['message']);
  return problem(json['code'] ?? json['error'], json['message'] ?? json['title'] ?? json['error']);
}

function problem(code: unknown, message: unknown): Problem {
  return { code: text(code), message: text(message) ?? '' };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? sanitized(String(value)) : undefined;
}

/** Replaces control and format characters, because they could forge log lines or hide text in a terminal. */
function sanitized(raw: string): string {
  const line = raw
    .slice(0, maxMessageLength * 4)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
  return shorten(line, maxMessageLength);
}

function isPage(body: string): boolean {
  return body.trimStart().startsWith('<');
}

function parse(body: string): Record<string, unknown> | undefined {
  try {
    return record(JSON.parse(body));
  } catch {
    return undefined; // not JSON
  }
}

function record(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
}
