import { keyHeaders, type Operation, ofChanges } from './operation.ts';

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

const ofNames = ['user_not_found', 'user_renamed'] as const;
const ofSteps = [...ofChanges.filter((code) => code !== 'unknown_rank'), ...ofNames, 'no_further_rank'] as const;

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
    path: '/v2/demote',
    id: 'demote',
    summary: 'Give a member the next lower rank',
    description:
      'The next rank is found at the moment of the change, on the ladder if there is one; locked roles are skipped.',
    body: { description: anyContentType, schema: 'StepRequest', example: { robloxUserId: 1001 } },
    codes: ofSteps,
  },
];
