import * as z from 'zod';
import type { KeyRecord, Role } from '../../core/model.ts';
import type { CallContext } from '../../ports/index.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { findGivable, findMemberRoles } from '../../usecases/group/group.ts';
import { openHold } from '../../usecases/holds/open-hold.ts';
import { findUser, userNameOf } from '../../usecases/people/users.ts';
import { admitCaller } from '../callers.ts';
import { callIn, deadlineOf, simulatedMark } from '../changes.ts';
import { memberFields, namesOneMember } from '../fields.ts';
import { answerFields, type Exchange, platformCodes, type Route, route, workspaceId } from '../route.ts';

const memberQuery = z.object(memberFields).superRefine(namesOneMember);

const roleFields = { id: z.int().min(1), name: z.string(), rank: z.int().min(0).max(255) };

const memberAnswer = z.strictObject({
  ...answerFields,
  robloxUserId: z.int().min(1),
  userName: z.string().nullable().describe('The user name; null if Roblox does not report it now.'),
  inGroup: z.boolean(),
  rank: z
    .int()
    .min(0)
    .max(255)
    .describe(
      'The highest rank number, counting only the base role and the ladder if there is one; 0 if the user is not in the group.',
    ),
  roleId: z.int().min(1).nullable().describe('The role with that rank.'),
  roleName: z.string().nullable(),
  roles: z.array(z.strictObject(roleFields)).describe('Every role of the member, ascending by rank.'),
  suspended: z.boolean(),
  suspendedUntil: z
    .int()
    .nullable()
    .describe('When the suspension ends, in seconds since 1970; null if it has no end.'),
});

const givableRole = z.strictObject({
  ...roleFields,
  canGive: z.boolean().describe('Whether this key can give the role, as far as rankd knows.'),
});
const rolesAnswer = z.strictObject({
  ...answerFields,
  roles: z.array(givableRole).describe('Every role of the group, ascending by rank.'),
});

const workspaceAnswer = z.strictObject({
  ...answerFields,
  workspace: z.strictObject({
    workspaceId,
    name: z.string(),
    discordGuildId: z.null(),
    robloxGroupId: z.string().regex(/^\d+$/),
    verified: z.boolean().describe("Whether Roblox accepts rankd's credential."),
    affiliate: z.literal(false),
    botType: z.literal('custom'),
  }),
});

const read = {
  method: 'GET',
  key: { scope: 'verify', in: 'bearer or header', place: 'query or Roblox-Id' },
} as const;
const ids = { success: true, requestId: 'req_0aB1cD2eF3gH' } as const;

export const readRoutes: readonly Route[] = [
  route({
    ...{ ...read, path: '/v2/member' },
    docs: {
      id: 'member',
      summary: "Get a member's roles",
      description:
        'Reads the roles of a user from Roblox, by user id or by name. The answer is 200 even if the user is not in the group.',
    },
    query: memberQuery,
    answers: [
      {
        name: 'MemberAnswer',
        description: 'The roles.',
        schema: memberAnswer,
        example: {
          ...{ ...ids, message: 'User 1001 is Officer (rank 20).' },
          ...{ robloxUserId: 1001, userName: 'Newcomer', inGroup: true, rank: 20 },
          ...{ roleId: 70020, roleName: 'Officer' },
          roles: [
            { id: 12884901889, name: 'Member', rank: 1 },
            { id: 70020, name: 'Officer', rank: 20 },
          ],
          ...{ suspended: false, suspendedUntil: null },
        },
      },
    ],
    codes: [...platformCodes, 'user_not_found', 'user_renamed'],
    handler: (exchange) =>
      answer(exchange, async ({ app, call }) => {
        const { robloxUserId, username } = exchange.query();
        return memberView(app, { robloxUserId, username }, call);
      }),
  }),
  route({
    ...{ ...read, path: '/v2/roles' },
    docs: {
      id: 'roles',
      summary: 'List the roles of the group',
      description: 'Lists all roles, and whether this key can give each of them.',
    },
    answers: [
      {
        name: 'RolesAnswer',
        description: 'The roles.',
        schema: rolesAnswer,
        example: {
          ...{ ...ids, message: 'The group has 2 roles; this key can give 1 of them.' },
          roles: [
            { id: 70000, name: 'Guest', rank: 0, canGive: false },
            { id: 70020, name: 'Officer', rank: 20, canGive: true },
          ],
        },
      },
    ],
    codes: platformCodes,
    handler: (exchange) =>
      answer(exchange, async ({ app, caller, call }) => {
        const { roles, givable } = await findGivable(app, caller.key, call);
        return {
          message: `The group has ${roles.length} roles; this key can give ${givable.length} of them.`,
          roles: roles.map((role) => ({ ...roleView(role), canGive: givable.includes(role) })),
        };
      }),
  }),
  route({
    ...{ ...read, path: '/v2/workspace' },
    docs: {
      id: 'workspace',
      summary: 'Get the workspace and its group',
      description: 'Returns the workspace and its group, with the field names of Panora v2.',
    },
    answers: [
      {
        name: 'WorkspaceAnswer',
        description: 'The workspace.',
        schema: workspaceAnswer,
        example: {
          ...{ ...ids, message: 'This is rankd for the group Night Shift (4242).' },
          workspace: {
            ...{ workspaceId: 'ws_0aB1cD2eF3gH', name: 'main', discordGuildId: null, robloxGroupId: '4242' },
            ...({ verified: true, affiliate: false, botType: 'custom' } as const),
          },
        },
      },
    ],
    codes: platformCodes,
    handler: (exchange) =>
      answer(exchange, async ({ app, caller: { workspace }, call }) => {
        const group = await app.group.about(call);
        return {
          message: `This is rankd for the group ${group.name} (${group.id}).`,
          workspace: {
            ...{ workspaceId: workspace.id, name: workspace.name, discordGuildId: null },
            ...{ robloxGroupId: String(group.id), verified: app.deadCredential() === undefined },
            ...({ affiliate: false, botType: 'custom' } as const),
          },
        };
      }),
  }),
];

/** Admits the caller, and responds with the data that `find` returns. */
async function answer<Found extends { message: string }>(
  exchange: Exchange,
  find: (found: { app: DaemonContext; caller: KeyRecord; call: CallContext }) => Promise<Found>,
): Promise<{ success: true; requestId: string } & Found> {
  const { app, request } = exchange;
  const { caller } = await admitCaller(exchange);
  using deadline = deadlineOf(exchange);
  const found = await find({ app, caller, call: callIn(deadline, caller) });
  request.notes.level = 'debug'; // games poll this, and it changes nothing
  const message = found.message + simulatedMark(app.group.title);
  return { success: true, requestId: request.id, ...found, message };
}

async function memberView(
  app: DaemonContext,
  { robloxUserId, username }: z.output<typeof memberQuery>,
  call: CallContext,
): Promise<Omit<z.infer<typeof memberAnswer>, 'success' | 'requestId'>> {
  const user = robloxUserId == null ? await findUser(app, String(username), call) : undefined;
  const userId = user?.id ?? Number(robloxUserId);
  const [found, userName, hold] = await Promise.all([
    findMemberRoles(app, userId, call),
    user?.name ?? userNameOf(app, userId, call),
    openHold(app, userId),
  ]);
  const suspension = hold?.kind === 'suspension' ? hold : undefined;
  const { rank = 0, highest, held = [] } = found ?? {};
  const title = robloxUserId == null ? `${username} (${userId})` : `User ${userId}`;
  return {
    message: highest === undefined ? `${title} is not in the group.` : `${title} is ${highest.name} (rank ${rank}).`,
    robloxUserId: userId,
    userName: userName ?? null,
    inGroup: found !== undefined,
    rank,
    roleId: highest?.id ?? null,
    roleName: highest?.name ?? null,
    roles: held.filter(({ kind }) => kind !== 'private').map(roleView), // private roles are hidden on Roblox
    suspended: suspension !== undefined,
    suspendedUntil: suspension?.endsAt === undefined ? null : Math.ceil(suspension.endsAt / 1000),
  };
}

function roleView({ id, name, rank }: Role): Pick<Role, 'id' | 'name' | 'rank'> {
  return { id, name, rank };
}
