import type { PublicCode } from '../errors.ts';
import { keyHeaders, type Operation, ofChanges, ofKeys } from './operation.ts';

const answer = {
  description: 'The member holds the rank.',
  schema: 'ChangeAnswer',
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

const anyContentType = 'JSON, whatever its content type; gzip is accepted. Unknown fields are ignored.';

const change = {
  method: 'post',
  key: 'bearer or header',
  parameters: ['placeOfRequest', 'Idempotency-Key'],
  answer,
  answerHeaders: [...keyHeaders, 'x-rank-change', 'idempotent-replayed'],
} as const satisfies Partial<Operation>;

const suspensionAnswer = {
  description: 'The member is suspended.',
  schema: 'SuspensionAnswer',
  example: {
    ...answer.example,
    newRank: 1,
    oldRank: 20,
    roleName: 'Member',
    until: 1_796_148_000,
    suspensionId: 'hold_0aB1cD2eF3gH',
  },
} as const;

const notOfLifts: readonly string[] = ['member_suspended', 'ambiguous_rank'];
const ofLifts = ofChanges.filter((code) => !notOfLifts.includes(code));
const ofNames = ['user_not_found', 'user_renamed'] as const;
const ofSteps = [...ofChanges.filter((code) => code !== 'unknown_rank'), ...ofNames, 'no_further_rank'] as const;

const reading = {
  method: 'get',
  key: 'bearer or header',
  parameters: ['placeOfRequest'],
  answerHeaders: keyHeaders,
} as const satisfies Partial<Operation>;

const ofReads = [
  ...ofKeys,
  'platform_rejected',
  'platform_credential',
  'platform_busy',
  'platform_unavailable',
] as const satisfies PublicCode[];

/** The operations of /v2, for new clients. */
export const operationsOfV2: readonly Operation[] = [
  {
    ...change,
    path: '/v2/rank',
    id: 'setRank',
    summary: 'Give a member a rank',
    description:
      'Makes the rank the highest of the member, and answers 200 only where Roblox was seen to hold it. Member and rank can be named by id or by name.',
    body: {
      description: anyContentType,
      schema: 'SetRankRequest',
      example: { robloxUserId: 1001, rank: 'Officer', reason: 'passed the training' },
    },
    codes: [...ofChanges, ...ofNames, 'ambiguous_name'],
  },
  {
    ...change,
    path: '/v2/promote',
    id: 'promote',
    summary: 'Give a member the next higher rank',
    description:
      'The next rank is found at the moment of the change, on the ladder if there is one; locked roles are skipped.',
    body: { description: anyContentType, schema: 'StepRequest', example: { robloxUserId: 1001, reason: 'quiz' } },
    codes: ofSteps,
  },
  {
    ...change,
    path: '/v2/suspend',
    id: 'suspend',
    summary: 'Suspend a member for a time',
    description:
      'Takes all roles from the member, and gives exactly them back at the end. Until then no game can change the rank. The key needs the scope suspend.',
    body: {
      description: anyContentType,
      schema: 'SuspendRequest',
      example: { robloxUserId: 1001, duration: '3d', reason: 'spam' },
    },
    answer: suspensionAnswer,
    codes: [
      ...ofChanges.filter((code) => code !== 'member_suspended'),
      ...ofNames,
      'ambiguous_name',
      'already_suspended',
    ],
  },
  {
    ...change,
    path: '/v2/unsuspend',
    id: 'unsuspend',
    summary: 'End a suspension',
    description:
      'Gives the member exactly the roles from before back. The key needs the scope suspend, and passes the same rules as for a promotion to these roles. It ends only suspensions that a key began.',
    body: { description: anyContentType, schema: 'StepRequest', example: { robloxUserId: 1001 } },
    answer: { ...suspensionAnswer, description: 'The member holds the roles from before.' },
    codes: [...ofLifts, ...ofNames, 'not_suspended', 'suspended_by_operator'],
  },
  {
    ...change,
    path: '/v2/demote',
    id: 'demote',
    summary: 'Give a member the next lower rank',
    description:
      'The next rank is found at the moment of the change, on the ladder if there is one; locked roles are skipped.',
    body: { description: anyContentType, schema: 'StepRequest', example: { robloxUserId: 1001 } },
    codes: ofSteps,
  },
  {
    ...reading,
    path: '/v2/member',
    id: 'member',
    summary: 'Which roles does a member hold?',
    description:
      'Reads them from Roblox, of a member named by id or by name. Somebody who is not in the group is an answer, too.',
    parameters: ['robloxUserId', 'username', 'placeOfRequest'],
    answer: {
      description: 'The roles.',
      schema: 'MemberAnswer',
      example: {
        ...{ success: true, requestId: 'req_0aB1cD2eF3gH', message: 'User 1001 is Officer (rank 20).' },
        ...{ robloxUserId: 1001, inGroup: true, rank: 20, roleId: 70020, roleName: 'Officer' },
        roles: [
          { id: 12884901889, name: 'Member', rank: 1 },
          { id: 70020, name: 'Officer', rank: 20 },
        ],
        ...{ suspended: false, suspendedUntil: null },
      },
    },
    codes: [...ofReads, ...ofNames],
  },
  {
    ...reading,
    path: '/v2/roles',
    id: 'roles',
    summary: 'Which roles does the group have?',
    description: 'Lists them, and which of them this key can give.',
    answer: {
      description: 'The roles.',
      schema: 'RolesAnswer',
      example: {
        ...{
          success: true,
          requestId: 'req_0aB1cD2eF3gH',
          message: 'The group has 2 roles; this key can give 1 of them.',
        },
        roles: [
          { id: 70000, name: 'Guest', rank: 0, canGive: false },
          { id: 70020, name: 'Officer', rank: 20, canGive: true },
        ],
      },
    },
    codes: ofReads,
  },
  {
    ...reading,
    path: '/v2/workspace',
    id: 'workspace',
    summary: 'Whose rankd is this?',
    description: 'Tells the workspace and its group, in the fields of Panora v2.',
    answer: {
      description: 'The workspace.',
      schema: 'WorkspaceAnswer',
      example: {
        ...{ success: true, requestId: 'req_0aB1cD2eF3gH', message: 'This is rankd for the group Night Shift (4242).' },
        workspace: {
          ...{ workspaceId: 'ws_0aB1cD2eF3gH', name: 'main', discordGuildId: null, robloxGroupId: '4242' },
          ...{ verified: true, affiliate: false, botType: 'custom' },
        },
      },
    },
    codes: ofReads,
  },
];
