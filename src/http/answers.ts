import * as z from 'zod';
import { type PublicCode, publicCodes } from './errors.ts';

/** The body of each kind of answer. The types of the routes and the description of the API are made from these schemas. */

export const workspaceId = z.string().regex(/^ws_\w+$/);

export const rankAnswer = z.strictObject({
  success: z.literal(true),
  message: z.string().describe('What happened, in one sentence.'),
  rankeeId: z.int().min(1).describe('As it was sent.'),
  newRankId: z.int().min(1).describe('As it was sent.'),
});

const requestId = z
  .string()
  .regex(/^req_\w+$/)
  .describe('The same as in x-request-id and in the log.');

const roleRank = z.int().min(0).max(255).nullable();

/** Of each change on /v2. */
export const changeAnswer = z.strictObject({
  success: z.literal(true),
  requestId,
  message: z.string().describe('What happened, in one sentence.'),
  workspaceId,
  robloxUserId: z.int().min(1).describe('The member whose rank it is.'),
  oldRank: roleRank.describe('The number of the highest rank before, of those that count; null if it is not known.'),
  newRank: roleRank.describe('The number of the highest rank now.'),
  roleName: z.string().nullable().describe('The role with that rank.'),
  changeId: z
    .string()
    .regex(/^chg_\w+$/)
    .describe('The id of the change in the history.'),
});

/** A role on /v2. */
const roleFields = { id: z.int().min(1), name: z.string(), rank: z.int().min(0).max(255) };

export const memberAnswer = z.strictObject({
  success: z.literal(true),
  requestId,
  message: z.string(),
  robloxUserId: z.int().min(1),
  inGroup: z.boolean(),
  rank: z.int().min(0).max(255).describe('The highest rank that counts; 0 if the user is not in the group.'),
  roleId: z.int().min(1).nullable().describe('The role with that rank.'),
  roleName: z.string().nullable(),
  roles: z.array(z.strictObject(roleFields)).describe('Every role that the member holds, ascending by rank.'),
  suspended: z.boolean(),
  suspendedUntil: z
    .int()
    .nullable()
    .describe('When the suspension ends, in seconds since 1970; null if it has no end.'),
});

export const rolesAnswer = z.strictObject({
  success: z.literal(true),
  requestId,
  message: z.string(),
  roles: z
    .array(
      z.strictObject({
        ...roleFields,
        canGive: z.boolean().describe('Whether this key can give it, as far as that is known.'),
      }),
    )
    .describe('Every role of the group, ascending by rank.'),
});

export const workspaceAnswer = z.strictObject({
  success: z.literal(true),
  requestId,
  message: z.string(),
  workspace: z.strictObject({
    workspaceId,
    name: z.string(),
    discordGuildId: z.null(),
    robloxGroupId: z.string().regex(/^\d+$/),
    verified: z.boolean().describe('Whether Roblox accepts what rankd acts with.'),
    affiliate: z.literal(false),
    botType: z.literal('custom'),
  }),
});

/** Of POST /v2/suspend and /v2/unsuspend. */
export const suspensionAnswer = changeAnswer.extend({
  until: z
    .int()
    .nullable()
    .describe('When the roles are given back, in seconds since 1970; null if only a person does that.'),
  suspensionId: z
    .string()
    .regex(/^hold_\w+$/)
    .nullable()
    .describe('The id of the suspension; null for a test key, which suspends nobody.'),
});

export const healthAnswer = z.strictObject({ status: z.literal('ok') });

export const readyAnswer = z.strictObject({
  status: z.literal('ready'),
  simulated: z.literal(true).optional().describe('There if the group is simulated: nothing touches Roblox.'),
  misfits: z
    .array(z.string())
    .optional()
    .describe('There if settings no longer say which role they mean: a sentence for each.'),
});

export const greetingAnswer = z.strictObject({
  message: z.string().describe('What answers here, in words.'),
  docs: z.literal('/docs').describe('The page about this API.'),
  openapi: z.literal('/openapi.json').describe('The same for programs.'),
});

/** The one shape of every answer that is not 200. */
export const errorAnswer = z.strictObject({
  success: z.literal(false),
  error: z.string().describe('The short reason that belongs to the code.'),
  code: z.enum(publicCodes as [PublicCode, ...PublicCode[]]).describe('Stable; made for programs.'),
  message: z.string().describe('One sentence that a game owner can act on.'),
  requestId,
  retryAfter: z.int().min(1).optional().describe('Seconds to wait; only where waiting helps.'),
});
