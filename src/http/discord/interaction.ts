import type { KeyObject } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import * as z from 'zod';
import { RankdError, type RefusalReason } from '../../base/errors.ts';
import { crypto } from '../../base/node-modules.ts';
import { isDiscordId } from '../../core/discord-person.ts';

/** https://discord.com/developers/docs/interactions/receiving-and-responding#interaction-object-interaction-type */
export const interactionTypes = { ping: 1, command: 2, autocomplete: 4 } as const;

const snowflake = z.string().refine(isDiscordId);
const option = z.object({
  name: z.string(),
  value: z.union([z.string(), z.number(), z.boolean()]).optional(),
  focused: z.boolean().optional(),
});
const name = z.string().nullish();
const member = z.object({
  nick: name,
  roles: z.array(z.string()),
  user: z.object({ id: snowflake, username: z.string(), global_name: name }),
});

/** The schemas in this file ignore unknown fields, because Discord can add fields at any time. */
const anyInteraction = z.object({ type: z.int() });
const interaction = z.object({
  id: snowflake,
  application_id: snowflake,
  guild_id: z.string().nullish(),
  /** Anyone who has this token can post replies as the application for 15 minutes. */
  token: z.string().regex(/^[\w.~-]{1,2000}$/),
  member: member.nullish(),
  data: z.object({ name: z.string(), options: z.array(option).default([]) }),
});

export type Interaction = z.output<typeof interaction>;
export type InteractionMember = z.output<typeof member>;

/** Parses a request's type and, for commands and autocomplete, the rest of the request. Throws `invalid_request`. */
export function readInteraction(body: Buffer): { type: number; interaction: Interaction | undefined } {
  const content = parsed(body);
  const { type } = checked(anyInteraction, content);
  const isKnown = type === interactionTypes.command || type === interactionTypes.autocomplete;
  return { type, interaction: isKnown ? checked(interaction, content) : undefined };
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new RankdError('invalid_request', 'The body is not JSON.');
  }
}

function checked<Schema extends z.ZodType>(schema: Schema, content: unknown): z.output<Schema> {
  const { data, error } = schema.safeParse(content);
  if (error === undefined) return data as z.output<Schema>;
  const fields = [...new Set(error.issues.map(({ path }) => path.join('.') || 'the body'))].slice(0, 5);
  throw new RankdError(
    'invalid_request',
    `The request is not a Discord interaction: ${fields.join(', ')} is missing or invalid.`,
  );
}

/** Returns the name that Discord shows for a person. */
export function shownName({ nick, user: { global_name, username } }: InteractionMember): string {
  return nick || global_name || username;
}

const maxSkewMs = 5 * 60_000;

/** Parses an Ed25519 public key in Discord's format: 64 hex digits. */
export function publicKeyOf(hex: string): KeyObject {
  const x = Buffer.from(hex, 'hex').toString('base64url');
  return crypto().createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
}

/**
 * Verifies Discord's signature over the timestamp and the body. Returns a refusal if the signature is missing, wrong or
 * stale.
 */
export function refusalOfSignature(
  { headers, body }: { headers: IncomingHttpHeaders; body: unknown },
  { publicKey, now }: { publicKey: KeyObject; now: number },
): RankdError | undefined {
  const signature = String(headers['x-signature-ed25519'] ?? '');
  const timestamp = String(headers['x-signature-timestamp'] ?? '');
  if (signature === '' || timestamp === '') return refusals.no_signature;
  if (!/^[\da-f]{128}$/i.test(signature) || !/^\d{1,12}$/.test(timestamp)) return refusals.wrong_signature;
  const signed = Buffer.concat([Buffer.from(timestamp), Buffer.isBuffer(body) ? body : Buffer.alloc(0)]);
  if (!crypto().verify(null, signed, publicKey, Buffer.from(signature, 'hex'))) return refusals.wrong_signature;
  return Math.abs(now - Number(timestamp) * 1_000) > maxSkewMs ? refusals.stale_signature : undefined;
}

/** Created once and shared, because anyone can cause thousands of these refusals. */
const refusals = {
  no_signature: refusal('no_signature'),
  wrong_signature: refusal('wrong_signature'),
  stale_signature: refusal('stale_signature'),
};

function refusal(reason: RefusalReason): RankdError {
  const message = 'This address accepts only requests that Discord signed in the last 5 minutes.';
  return RankdError.withoutStack('invalid_key', message, { details: { reason } });
}
