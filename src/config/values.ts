import { isIP } from 'node:net';
import * as z from 'zod';
import { asBaseUrl } from '../base/net.ts';
import { durationPattern, parseDuration } from '../base/time.ts';

// The types of settings. The error of each check describes a valid value.

export function section<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, { error: 'a mapping of settings' }).prefault({} as z.input<z.ZodObject<Shape>>);
}

export function trueOrFalse() {
  return z.boolean({ error: 'true or false' });
}

export function wholeNumberBetween(min: number, max: number) {
  const error = `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

export function id() {
  const error = 'a whole number above 0';
  return z.int({ error }).min(1, { error });
}

export function ids() {
  return z.array(id(), { error: 'a list of ids' });
}

const roleError = 'a rank, a role id, or a role name of at most 100 characters';

/**
 * Accepts a number or a name, and converts digits to a number, as the HTTP API does. Refuses long words, which may be
 * misplaced secrets.
 */
function roleNameOr(error: string) {
  return z.union(
    [
      z.int(error).min(1, error),
      z
        .string(error)
        .trim()
        .refine((text) => text.length <= 100 && /^(?!.*rk_(live|test)_)(?!.*\S{41})./.test(text), error)
        .transform((text) => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : text))
        .refine((role) => typeof role === 'number' || /\D/.test(role), error),
    ],
    { error },
  );
}

const roleName = roleNameOr(roleError);

/** One end of a rank range: a number, or the name of a role with that rank. */
export function rankOrName() {
  const error = 'a whole number from 1 to 254, or a role name';
  return roleNameOr(error).refine((role) => typeof role === 'string' || role <= 254, error);
}

/** A role whose name is a number must be listed by its id. */
export function roles() {
  return z.array(roleName, { error: 'a list of ranks, role ids or role names' });
}

export function role() {
  return roleName;
}

export function oneOf<const Names extends readonly [string, ...string[]]>(names: Names) {
  return z.enum(names, { error: `one of ${names.join(', ')}` });
}

export function wordOrRoles<const Words extends readonly [string, ...string[]]>(words: Words) {
  const error = `one of ${words.join(', ')}, or a list of ranks, role ids or role names`;
  return z.union([z.enum(words, error), z.array(roleName, error)], { error });
}

export function filePath() {
  const error = 'the path of a file';
  return z.string({ error }).min(1, { error });
}

export function host() {
  const error = 'an IP address or host name, without a port';
  return z.string({ error }).refine((text) => isIP(text) > 0 || /^[a-z\d]([a-z\d.-]*[a-z\d])?$/i.test(text), { error });
}

export function network() {
  const error = 'an IP address, or a network such as 10.0.0.0/8';
  return z.string({ error }).refine(
    (text) => {
      const [address = '', length = '0', ...rest] = text.split('/');
      const longest = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
      return rest.length === 0 && /^\d{1,3}$/.test(length) && Number(length) <= longest;
    },
    { error },
  );
}

export function duration(
  preset: string,
  { min, max, example = preset }: { min: string; max: string; example?: string },
) {
  return durationBetween({ min, max, example }).prefault(preset);
}

/**
 * A duration for all members, or a list of durations, each for a rank and above. Ranks below the lowest entry have
 * none.
 */
export function durationByRank(preset: string, limits: { min: string; max: string; example: string }) {
  const error = `a duration from ${limits.min} to ${limits.max}, such as ${limits.example}, or a list of {from: RANK, for: DURATION}`;
  const one = durationBetween(limits).transform((forMs) => (forMs === 0 ? [] : [{ from: 0, forMs }]));
  const entry = z
    .strictObject(
      { from: wholeNumberBetween(1, 255), for: durationBetween(limits) },
      { error: '{from: RANK, for: DURATION}' },
    )
    .transform(({ from, for: forMs }) => ({ from, forMs }));
  return z.union([one, z.array(entry)], { error }).prefault(preset);
}

export function optionalDuration({ min, max }: { min: string; max: string }) {
  return durationBetween({ min, max, example: '90d' }).optional();
}

/** Converts the duration to milliseconds. */
function durationBetween({ min, max, example }: { min: string; max: string; example: string }) {
  const error = `a duration from ${min} to ${max}, such as ${example}`;
  const msOf = (text: string) => parseDuration(text) ?? Number.NaN;
  return z
    .string({ error })
    .regex(durationPattern, { error, abort: true })
    .refine((text) => msOf(text) >= msOf(min) && msOf(text) <= msOf(max), { error, abort: true })
    .transform(msOf);
}

export function url(preset: string) {
  return baseUrl().prefault(preset);
}

export function optionalUrl() {
  return baseUrl().optional();
}

export function origin() {
  const error = 'an https address (or http on loopback) without user, password, path, query or fragment';
  return z
    .string({ error })
    .refine((text) => asBaseUrl(text) !== undefined && new URL(text).pathname === '/', { error, abort: true })
    .transform((text) => new URL(text).origin);
}

/** The dashboard's path on the API's listener, where it must not clash with an API route. */
export function pathOfPage() {
  const error = 'a path of letters, digits and dashes that the API does not use, such as /page';
  const ofApi = ['v1', 'v2', 'docs', 'group', 'discord', 'roblox', 'healthz', 'readyz'];
  return z
    .string({ error })
    .refine((text) => /^(\/[\w-]+)+$/.test(text) && !ofApi.includes(text.split('/')[1] ?? ''), { error });
}

/** Removes a trailing slash. */
function baseUrl() {
  const error = 'an https address (or http on loopback) without user, password, query or fragment';
  return z
    .string({ error })
    .refine((text) => asBaseUrl(text) !== undefined, { error, abort: true })
    .transform((text) => asBaseUrl(text) ?? text);
}

/**
 * Refuses a list in which two entries have the same value in one of these fields. `setting` names the list in the
 * error.
 */
export function unique<Entry>(setting: string, fields: ReadonlyArray<keyof Entry & string>) {
  return ({ value, issues }: z.core.ParsePayload<Entry[]>): void => {
    if (issues.length > 0) return;
    for (const field of fields) {
      const first = new Map<unknown, number>();
      value.forEach((entry, index) => {
        if (entry[field] === undefined) return;
        const before = first.get(entry[field]);
        if (before === undefined) first.set(entry[field], index);
        else {
          const message = `a value other than that of ${setting}[${before}].${field}`;
          issues.push({ code: 'custom', path: [index, field], input: entry[field], message });
        }
      });
    }
  };
}
