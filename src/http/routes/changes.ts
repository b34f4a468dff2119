import * as z from 'zod';
import { parseDuration } from '../../base/time.ts';
import type { Direction, Hold, RankChange, RankRequest, RoleChangeKind } from '../../core/model.ts';
import type { RoleName } from '../../core/role-scheme.ts';
import type { CallContext } from '../../ports/index.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { liftHold, requireLength } from '../../usecases/holds/holds.ts';
import { findUser } from '../../usecases/people/users.ts';
import { admitCaller } from '../callers.ts';
import {
  appliedChange,
  asRoleName,
  callerOf,
  callIn,
  changeFor,
  deadlineOf,
  idempotencyOf,
  makeChange,
  ranksOf,
  withoutOmitted,
} from '../changes.ts';
import { memberFields, namesOneMember, notAnObject, optionalText, text, userId } from '../fields.ts';
import { answerFields, changeCodes, changeId, type Exchange, type Route, route, workspaceId } from '../route.ts';

const rankError = ({ input }: { input?: unknown }) =>
  input === undefined ? 'is missing' : 'must be a rank number, a role id or a role name';
const rank = z
  .union([z.int({ error: rankError }).min(0, { error: rankError }), text.min(1, { error: rankError })], {
    error: rankError,
  })
  .describe('The rank number in the group (1 to 255), a role id (above 255), or a role name.');

const durationError = ({ input }: { input?: unknown }) =>
  input === undefined ? 'is missing' : 'must be a duration such as 3d, 12h or 30m, or a number of whole seconds';
const isDuration = (given: string) => msOf(given) !== undefined;
const duration = z
  .union([z.int({ error: durationError }), text.refine(isDuration, { error: durationError })], { error: durationError })
  .describe('The length of the suspension: `3d`, `12h`, `30m`, or whole seconds.');

/** The fields shared by all /v2 requests that change one member. */
const changeFields = {
  ...memberFields,
  reason: optionalText.describe('The reason, in any words; rankd stores its first 200 characters with the change.'),
  rankerId: userId.nullish().describe('User id of the player who requests the change; 0 or omitted if there is none.'),
  rankerName: optionalText.describe('Name of the player who requests the change.'),
  rankeeName: optionalText.describe('Name of the member whose rank changes, for the history and the answer.'),
  command: optionalText.describe('The command that led to the change; stored with it.'),
};

/** The fields of changes that can be conditional on the member's current rank. */
const rankFields = {
  ...changeFields,
  ifRank: rank
    .nullish()
    .describe(
      'rankd makes the change only if the member has this rank (a number, a role id or a name); otherwise, it answers 409 `rank_differs`.',
    ),
};
const atLeast = z
  .boolean({ error: 'must be true or false' })
  .nullish()
  .describe('true: rankd does not change a member who already has this rank or a higher one, and answers 200.');

const role = rank.describe('The name of a role that is not on the ladder, its rank number, or its role id.');
const roleBody = z.object({ ...changeFields, role }, notAnObject).superRefine(namesOneMember);

const setRankBody = z.object({ ...rankFields, rank, atLeast }, notAnObject).superRefine(namesOneMember);
const rankStepBody = z.object(rankFields, notAnObject).superRefine(namesOneMember);
const stepBody = z.object(changeFields, notAnObject).superRefine(namesOneMember);
const suspendBody = z.object({ ...changeFields, duration }, notAnObject).superRefine(namesOneMember);

const roleRank = z.int().min(0).max(255).nullable();
const changeAnswer = z.strictObject({
  ...answerFields,
  message: z.string().describe('The result, in one sentence.'),
  workspaceId,
  robloxUserId: z.int().min(1).describe('The user id of the member.'),
  oldRank: roleRank.describe(
    "The member's highest rank number before the change, counting only the base role and the ladder if there is one; null if unknown.",
  ),
  newRank: roleRank.describe("The member's highest rank number now, counted in the same way."),
  roleName: z.string().nullable().describe('The role with that rank.'),
  changeId: changeId.describe('The id of the change in the history.'),
});

const roleAnswer = z.strictObject({
  ...answerFields,
  message: z.string().describe('The result, in one sentence.'),
  workspaceId,
  robloxUserId: z.int().min(1).describe('The user id of the member.'),
  roleId: z.int().min(1).describe('The id of the role that was given or taken.'),
  roleName: z.string().describe('The name of that role.'),
  changeId: changeId.describe('The id of the change in the history.'),
});

const suspensionAnswer = changeAnswer.extend({
  until: z
    .int()
    .nullable()
    .describe('When rankd gives the roles back, in seconds since 1970; null if the suspension has no end.'),
  suspensionId: z
    .string()
    .regex(/^hold_\w+$/)
    .nullable()
    .describe('The id of the suspension; null for a test key, which suspends no member.'),
});

const body = { description: 'JSON, with any content type; gzip is accepted. Unknown fields are ignored.' };
const changed = {
  name: 'ChangeAnswer',
  description: 'The member holds the rank.',
  schema: changeAnswer,
  example: {
    success: true,
    requestId: 'req_0aB1cD2eF3gH',
    message: 'Newcomer (1001) is now Officer (rank 20), was Trainee (rank 10).',
    workspaceId: 'ws_0aB1cD2eF3gH',
    robloxUserId: 1001,
    oldRank: 10,
    newRank: 20,
    roleName: 'Officer',
    changeId: 'chg_0aB1cD2eF3gH',
  },
} as const;
const suspended = {
  name: 'SuspensionAnswer',
  description: 'The member is suspended.',
  schema: suspensionAnswer,
  example: {
    ...changed.example,
    message: 'Member 1001 is suspended until 2026-12-01 18:00 UTC, was Officer (rank 20).',
    oldRank: 20,
    newRank: 1,
    roleName: 'Member',
    until: 1_796_148_000,
    suspensionId: 'hold_0aB1cD2eF3gH',
  },
} as const;

const { oldRank: _, newRank: _now, ...exampleOfRole } = changed.example;
const roleChanged = {
  name: 'RoleAnswer',
  schema: roleAnswer,
  example: {
    ...exampleOfRole,
    message: 'Newcomer (1001) now also holds Recruit (rank 1).',
    ...{ roleId: 70_001, roleName: 'Recruit' },
  },
} as const;

const key = { in: 'bearer or header', place: 'query or Roblox-Id' } as const;
const change = { method: 'POST', key: { ...key, scope: 'rank' }, changesRanks: true } as const;
const suspension = { ...change, key: { ...key, scope: 'suspend' } } as const;

const alongside = { ...change, key: { ...key, scope: 'roles' } } as const;
const roleRequest = { ...body, name: 'RoleRequest', schema: roleBody };

const nameCodes = ['user_not_found', 'user_renamed'] as const;
const rankCodes = [...changeCodes, ...nameCodes, 'ambiguous_name', 'rank_differs'] as const;
const stepCodes = [...rankCodes, 'no_further_rank'] as const;
const roleCodes = [...changeCodes, ...nameCodes, 'ambiguous_name', 'needs_ladder'] as const;
const nextRank =
  'rankd determines the next rank when it makes the change, on the ladder if the configuration has one, and skips locked roles. If there is no further rank, it answers 409 `no_further_rank`.';

export const changeRoutes: readonly Route[] = [
  route({
    ...{ ...change, path: '/v2/rank' },
    docs: {
      id: 'setRank',
      summary: 'Give a member a rank',
      description:
        "Makes the rank the member's highest, and answers 200 only after Roblox has shown that the member holds it. You can name the member and the rank by id or by name.",
    },
    body: {
      ...{ ...body, name: 'SetRankRequest', schema: setRankBody },
      example: { robloxUserId: 1001, rank: 'Officer', reason: 'passed the training' },
    },
    answers: [changed],
    codes: rankCodes,
    handler: (exchange) =>
      changeOf(exchange, 'rank', () => {
        const { rank, atLeast, ...fields } = exchange.body();
        return { ...toRequestedChange(fields, asRoleName(rank)), ...(atLeast && { atLeast }), ...expectedRank(fields) };
      }),
  }),
  route({
    ...{ ...change, path: '/v2/promote' },
    docs: { id: 'promote', summary: 'Give a member the next higher rank', description: nextRank },
    body: {
      ...{ ...body, name: 'RankStepRequest', schema: rankStepBody },
      example: { robloxUserId: 1001, reason: 'quiz' },
    },
    answers: [changed],
    codes: stepCodes,
    handler: (exchange) => changeOf(exchange, 'promote', () => stepOf(exchange, 'promote')),
  }),
  route({
    ...{ ...change, path: '/v2/demote' },
    docs: { id: 'demote', summary: 'Give a member the next lower rank', description: nextRank },
    body: { ...{ ...body, name: 'RankStepRequest', schema: rankStepBody }, example: { robloxUserId: 1001 } },
    answers: [changed],
    codes: stepCodes,
    handler: (exchange) => changeOf(exchange, 'demote', () => stepOf(exchange, 'demote')),
  }),
  route({
    ...{ ...alongside, path: '/v2/roles/add' },
    docs: {
      id: 'addRole',
      summary: 'Give a member an extra role',
      description:
        'Gives a role that is not on the configured ladder; the rank and all other roles stay. The key needs the scope `roles`.',
    },
    body: { ...roleRequest, example: { robloxUserId: 1001, role: 'Recruit', reason: 'gamepass' } },
    answers: [{ ...roleChanged, description: 'The member holds the role.' }],
    codes: roleCodes,
    handler: (exchange) => changeRoleOf(exchange, 'role_added'),
  }),
  route({
    ...{ ...alongside, path: '/v2/roles/remove' },
    docs: {
      id: 'removeRole',
      summary: 'Take an extra role from a member',
      description:
        'Takes a role that is not on the configured ladder; the rank and all other roles stay. The key needs the scope `roles`.',
    },
    body: { ...roleRequest, example: { robloxUserId: 1001, role: 'Recruit' } },
    answers: [
      {
        ...roleChanged,
        description: 'The member does not hold the role.',
        example: { ...roleChanged.example, message: 'Newcomer (1001) no longer holds Recruit (rank 1).' },
      },
    ],
    codes: roleCodes,
    handler: (exchange) => changeRoleOf(exchange, 'role_removed'),
  }),
  route({
    ...{ ...suspension, path: '/v2/suspend' },
    docs: {
      id: 'suspend',
      summary: 'Suspend a member',
      description:
        'Takes all roles from the member, and gives exactly those roles back at the end. Until then, no game can change the rank. The key needs the scope `suspend`.',
    },
    body: {
      ...{ ...body, name: 'SuspendRequest', schema: suspendBody },
      example: { robloxUserId: 1001, duration: '3d', reason: 'spam' },
    },
    answers: [suspended],
    codes: [
      ...changeCodes.filter((code) => code !== 'member_suspended'),
      ...nameCodes,
      'ambiguous_name',
      'already_suspended',
    ],
    handler: suspend,
  }),
  route({
    ...{ ...suspension, path: '/v2/unsuspend' },
    docs: {
      id: 'unsuspend',
      summary: 'End a suspension',
      description:
        'Gives the member exactly the previous roles back. The key needs the scope `suspend`, and the rules for a promotion to these roles apply. Only suspensions that a key started can be ended.',
    },
    body: { ...{ ...body, name: 'StepRequest', schema: stepBody }, example: { robloxUserId: 1001 } },
    answers: [
      {
        ...suspended,
        description: 'The member holds the previous roles.',
        example: {
          ...suspended.example,
          message: 'Member 1001 holds Officer (rank 20), Member (rank 1) again.',
          ...{ oldRank: 1, newRank: 20, roleName: 'Officer' },
        },
      },
    ],
    codes: [
      ...changeCodes.filter((code) => code !== 'member_suspended' && code !== 'ambiguous_rank'),
      ...nameCodes,
      ...(['not_suspended', 'suspended_by_operator'] as const),
    ],
    handler: unsuspend,
  }),
];

/** If `username` is set, `rankeeId` is 0 until rankd has looked up the user. */
interface RequestedChange {
  request: RankRequest;
  username: string | undefined;
  /** If set, overrides the request's `newRankId`. */
  roleName?: string;
  kind?: RoleChangeKind;
  step?: Direction;
  ifRank?: RoleName;
  atLeast?: boolean;
}

function stepOf(exchange: Exchange<z.output<typeof rankStepBody>>, step: Direction): RequestedChange {
  const fields = exchange.body();
  return { ...toRequestedChange(fields), step, ...expectedRank(fields) };
}

function expectedRank({ ifRank }: Pick<z.output<typeof rankStepBody>, 'ifRank'>): { ifRank?: RoleName } {
  return ifRank == null ? {} : { ifRank: asRoleName(ifRank) };
}

function toRequestedChange(body: z.output<typeof stepBody>, rank: number | string = 0): RequestedChange {
  const { robloxUserId, username, rankerId, rankerName, rankeeName, reason, command } = body;
  const request = withoutOmitted({
    rankeeId: robloxUserId ?? 0,
    rankeeName: rankeeName ?? '',
    rankerId: rankerId ?? 0,
    rankerName: rankerName ?? '',
    newRankId: typeof rank === 'number' ? rank : 0,
    command,
    reason,
  });
  return { request, username: username ?? undefined, ...(typeof rank === 'string' && { roleName: rank }) };
}

type ChangeAnswer = z.infer<typeof changeAnswer>;

async function changeOf(exchange: Exchange, operation: string, read: () => RequestedChange): Promise<ChangeAnswer> {
  const { change, workspaceId } = await changeAsRequested(exchange, operation, read);
  return answerOf(change, { workspaceId, requestId: exchange.request.id });
}

async function changeRoleOf(
  exchange: Exchange<z.output<typeof roleBody>>,
  kind: RoleChangeKind,
): Promise<z.infer<typeof roleAnswer>> {
  const { change, workspaceId } = await changeAsRequested(exchange, kind, () => {
    const { role, ...fields } = exchange.body();
    return { ...toRequestedChange(fields, asRoleName(role)), kind };
  });
  const { message, rankeeId, roleId = 0, id } = change;
  return {
    ...{ success: true, requestId: exchange.request.id, message, workspaceId, robloxUserId: rankeeId },
    ...{ roleId, roleName: ranksOf(change).now?.name ?? '', changeId: id },
  };
}

async function changeAsRequested(exchange: Exchange, operation: string, read: () => RequestedChange) {
  const { change, caller } = await changeFor(exchange, operation, async (call) => {
    const { username, step, ...asked } = read();
    const request = await withMember(exchange.app, { request: asked.request, username }, call);
    return { ...asked, request, ...(step !== undefined && { step }) };
  });
  return { change, workspaceId: caller.workspace.id };
}

async function suspend(exchange: Exchange<z.output<typeof suspendBody>>): Promise<z.infer<typeof suspensionAnswer>> {
  const { app, request } = exchange;
  const { caller, placeId } = await admitCaller(exchange);
  const { duration, ...fields } = exchange.body();
  const { username, request: body } = toRequestedChange(fields);
  const forMs = msOf(duration) ?? 0;
  requireLength(app, forMs, 'invalid_request');
  using deadline = deadlineOf(exchange);
  const asked = {
    request: await withMember(app, { request: body, username }, callIn(deadline, caller)),
    hold: { kind: 'suspension', endsAt: app.clock.now() + forMs } as const,
  };
  const content = ['suspend', body, username, forMs];
  const change = await makeChange(exchange, { caller, placeId, asked, content }, deadline);
  return suspensionOf(change, { workspaceId: caller.workspace.id, requestId: request.id });
}

async function unsuspend(exchange: Exchange<z.output<typeof stepBody>>): Promise<z.infer<typeof suspensionAnswer>> {
  const { app, request } = exchange;
  const { caller, placeId } = await admitCaller(exchange);
  const { username, request: body } = toRequestedChange(exchange.body());
  using deadline = deadlineOf(exchange);
  const call = callIn(deadline, caller);
  const { rankeeId } = await withMember(app, { request: body, username }, call);
  const { rankerId, rankerName, command: typed, reason } = body;
  const command = {
    ...{ rankeeId, caller: callerOf(caller, placeId), force: false, reason },
    asked: { rankerId, rankerName, ...(typed !== undefined && { command: typed }) },
    ...idempotencyOf(request.headers['idempotency-key'], ['unsuspend', body, username]),
  };
  const { finished, hold, replayed } = await liftHold(app, command, call);
  const change = appliedChange(exchange, { ...finished, replayed });
  return suspensionOf(change, { workspaceId: caller.workspace.id, requestId: request.id }, hold);
}

async function withMember(
  app: DaemonContext,
  { request, username }: Pick<RequestedChange, 'request' | 'username'>,
  call: CallContext,
): Promise<RankRequest> {
  if (username === undefined) return request;
  const { id, name } = await findUser(app, username, call);
  return { ...request, rankeeId: id, rankeeName: name };
}

function answerOf(change: RankChange, ids: { workspaceId: string; requestId: string }): ChangeAnswer {
  const { before, now } = ranksOf(change);
  const { message, rankeeId, id } = change;
  return {
    ...{ success: true, requestId: ids.requestId, message, workspaceId: ids.workspaceId, robloxUserId: rankeeId },
    ...{ oldRank: before?.rank ?? null, newRank: now?.rank ?? null, roleName: now?.name ?? null, changeId: id },
  };
}

function suspensionOf(
  change: RankChange,
  ids: Parameters<typeof answerOf>[1],
  lifted?: Hold,
): z.infer<typeof suspensionAnswer> {
  const { hold, dryRun } = change;
  const endsAt = hold?.does === 'begin' ? hold.endsAt : lifted?.endsAt;
  return {
    ...answerOf(change, ids),
    until: endsAt === undefined ? null : Math.ceil(endsAt / 1_000),
    suspensionId: dryRun ? null : (hold?.id ?? null),
  };
}

/** Converts a duration to milliseconds. A number or a string of digits is in seconds. */
function msOf(given: string | number): number | undefined {
  const ms = /^\d+$/.test(String(given)) ? Number(given) * 1_000 : parseDuration(String(given));
  return ms !== undefined && Number.isSafeInteger(ms) ? ms : undefined;
}
