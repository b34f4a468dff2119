import * as z from 'zod';
import { parseMoment } from '../base/time.ts';
import { isKeyName } from '../core/api-key.ts';
import { directions, scopes, usualScopes } from '../core/model.ts';
import { ids, oneOf, whole } from './values.ts';

const nameError =
  '1 to 64 letters, digits, dots, dashes or underscores that begin with a letter or digit; never the secret itself';
const hashError = 'the 64 hex digits that `rankd key hash -` prints; never the secret itself';
const timeError = 'a date, or a time with its offset, such as "2027-01-31T00:00:00Z"';

/** One entry of `keys`. */
export const declaredKey = z
  .strictObject(
    {
      name: z.string({ error: nameError }).refine(isKeyName, { error: nameError }).describe('What commands call it.'),
      hash: z
        .string({ error: hashError })
        .regex(/^[\da-f]{64}$/, { error: hashError })
        .describe('SHA-256 of the secret in hex, as `rankd key hash` prints it.'),
      mode: oneOf(['live', 'test'])
        .default('live')
        .describe('live, or test for a rk_test_ secret: every check runs and nothing changes.'),
      scopes: z
        .array(oneOf(scopes), { error: 'a list of scopes' })
        .min(1, { error: 'at least one scope' })
        .default([...usualScopes])
        .describe('What it may do.'),
      expires_at: z
        .string({ error: timeError })
        .refine((text) => parseMoment(text) !== undefined, { error: timeError, abort: true })
        .transform(parseMoment)
        .optional()
        .describe(
          'A date, or a time with its offset: not accepted from then on; without it, as long as it stands here.',
        ),
      max_rank: whole(1, 254).optional().describe('Nothing above this rank.'),
      min_rank: whole(1, 254).optional().describe('Nothing below this rank.'),
      direction: oneOf(directions).optional().describe('Only changes up or down.'),
      self_rank: oneOf(['allow', 'deny'])
        .default('allow')
        .describe('deny: players may not rank themselves; allow: as policy.self_rank says.'),
      system: z
        .boolean({ error: 'true or false' })
        .default(false)
        .describe('For a game that ranks by itself: policy.ranker_check asks for no player behind a change.'),
      privileged: z
        .boolean({ error: 'true or false' })
        .default(false)
        .describe(
          'Whether it may give and take privileged roles where policy.privileged_roles leaves them to the operator.',
        ),
      any_place: z
        .boolean({ error: 'true or false' })
        .default(false)
        .describe(
          'Whether it may be used from anywhere, without a whitelist: for a bot or a web shop, never for a game.',
        ),
      rate: whole(1, 1_000_000).optional().describe('Rank requests a minute, instead of limits.rank.'),
      whitelist: ids().default([]).describe('Place or universe ids from which it may be used.'),
    },
    { error: 'a mapping with name and hash' },
  )
  .check(({ value, issues }) => {
    if (issues.length > 0 || value.min_rank === undefined || value.min_rank <= (value.max_rank ?? 255)) return;
    const message = `a rank up to max_rank, which is ${value.max_rank}`;
    issues.push({ code: 'custom', path: ['min_rank'], input: value.min_rank, message });
  });

export type DeclaredKeySettings = z.output<typeof declaredKey>;
