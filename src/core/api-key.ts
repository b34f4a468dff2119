import { crypto, zlib } from '../base/node-modules.ts';
import type { KeyMode, NewSecret } from './model.ts';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const shape = /^rk_(live|test)_[0-9A-Za-z]{36}$/;
const checksumLength = 6;

/** A new secret. `secret` is shown once; only `stored` is saved. */
export interface FreshSecret {
  secret: string;
  stored: NewSecret;
}

export function mintKey(mode: KeyMode): FreshSecret {
  const body = `rk_${mode}_${base62(30, (below) => crypto().randomInt(below))}`;
  const secret = body + checksum(body);
  return { secret, stored: { hash: hashKey(secret), masked: maskKey(secret) } };
}

/** Returns the mode of a well-formed key, or `undefined` if the text is mistyped, cut off or not a key. */
export function keyMode(secret: string): KeyMode | undefined {
  const mode = shape.exec(secret)?.[1];
  const isIntact = secret.endsWith(checksum(secret.slice(0, -checksumLength)));
  return isIntact && (mode === 'live' || mode === 'test') ? mode : undefined;
}

/**
 * Returns the SHA-256 of the whole key, in hex. A plain hash is enough, because no one can guess 30 random base62
 * characters (178 bits). rankd looks keys up by their hash, so response times reveal nothing about the secret.
 */
export function hashKey(secret: string): string {
  return crypto().hash('sha256', secret);
}

/** Returns the part of a key that is safe to show and log: enough to tell keys apart, but too little to use one. */
export function maskKey(secret: string): string {
  return `${secret.slice(0, 11)}…${secret.slice(-3)}`;
}

/**
 * Masks API keys in text from callers and operators, who sometimes paste keys into addresses, arguments or the wrong
 * field. Call it before storing, logging or showing such text. Also finds keys that are percent-encoded,
 * base64-encoded, split by white space, or missing their prefix. Does not change keys that `maskKey` has already
 * masked.
 */
export function withoutKeys(text: string): string {
  if (text.length < partLength) return withoutPrefixedKeys(text); // too short to contain a key in any other form
  const disguised = [decodedPercents(text), text.replaceAll(/\s+/g, '')].find(
    (plain) => holdsKey(plain) && !holdsKey(text),
  );
  return masked(disguised ?? text).replaceAll(/[\w+/-]{50,}={0,2}/g, (run) =>
    holdsKey(Buffer.from(run, 'base64').toString('latin1')) ? '…' : run,
  );
}

/**
 * Masks API keys and the secret part of Discord webhook addresses. Use it only for messages: a request must keep its
 * full webhook address, because rankd finds the webhook by it.
 */
export function withoutSecrets(text: string): string {
  return withoutKeys(text.replaceAll(/(\/webhooks\/\d{1,20}\/)[\w-]{20,}/gi, '$1…'));
}

function masked(text: string): string {
  const named = withoutPrefixedKeys(text);
  return keyPartsIn(named).reduce((rest, part) => rest.replaceAll(part, '…'), named);
}

function withoutPrefixedKeys(text: string): string {
  return text.replaceAll(/rk_(live|test)_\w{4,}/gi, 'rk_$1_…');
}

function holdsKey(text: string): boolean {
  return keyPartsIn(text).length > 0;
}

/** The number of characters after a key's prefix. */
const partLength = 36;

/**
 * Returns the 36 characters after the prefix of each key in the text, even if the prefix itself is missing. The
 * checksum tells keys from other text. To save time, checks only the first `maxRuns` runs of at least 36 letters and
 * digits.
 */
function keyPartsIn(text: string): string[] {
  const runs = text.match(/[0-9A-Za-z]{36,80}/g)?.slice(0, maxRuns) ?? [];
  const parts = runs.flatMap((run) =>
    Array.from({ length: run.length - partLength + 1 }, (_, from) => run.slice(from, from + partLength)),
  );
  return parts.filter((part) => keyMode(`rk_live_${part}`) ?? keyMode(`rk_test_${part}`));
}

const maxRuns = 16;

function decodedPercents(text: string): string {
  return text.replaceAll(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** True if the name is safe in a shell, a log line and a hint, and does not contain a key's prefix. */
export function isKeyName(text: string): boolean {
  return /^(?!.*rk_(live|test)_)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text);
}

/**
 * Creates a public identifier, e.g. `key_8TqLx0vBz3Rw`. With 71 random bits, ids are unique without a check. Guessing
 * one gains an attacker nothing, so `Math.random` is enough; a cryptographic source would take longer than a key
 * lookup, and add 4 ms to startup.
 */
export function newId(prefix: 'ws' | 'key' | 'undo' | 'req' | 'node' | 'hold' | 'list' | 'wh'): string {
  return `${prefix}_${base62(12, anyBelow)}`;
}

/**
 * Creates a change id from the request time (epoch milliseconds), e.g. `chg_VbflntX4kQ2mX7Lp`. Because ids sort by
 * time, recent ids share an index page even after millions of changes. Each id also contains 53 random bits.
 */
export function newChangeId(requestedAt: number): string {
  return `chg_${inBase62(requestedAt, 7)}${base62(9, anyBelow)}`;
}

function anyBelow(below: number): number {
  return Math.floor(Math.random() * below);
}

function base62(length: number, draw: (below: number) => number): string {
  return Array.from({ length }, () => alphabet[draw(alphabet.length)]).join('');
}

/** Returns a CRC-32 in base62. It detects a mistyped key without a database query. */
function checksum(body: string): string {
  return inBase62(zlib().crc32(body), checksumLength);
}

/** Returns the lowest `length` base62 digits of an integer, padded with zeros on the left. */
function inBase62(value: number, length: number): string {
  let rest = value;
  let digits = '';
  while (digits.length < length) {
    digits = alphabet[rest % alphabet.length] + digits;
    rest = Math.floor(rest / alphabet.length);
  }
  return digits;
}
