import { createHash } from 'node:crypto';
import type { RankChange } from '../../../src/core/model.ts';
import type { ChangeOutcome, NewKey, NewSecret } from '../../../src/ports/index.ts';

export const operator = 'cli:ann@host';
export const largestId = 2 ** 53 - 1;
export const awkwardText = `O'Brien "the\n\t\\ 👩‍🚀 %_; DROP TABLE keys; --\u0000é`;

export function newSecret(text: string): NewSecret {
  return { hash: createHash('sha256').update(text).digest('hex'), masked: `rk_live_${text.slice(0, 3)}…abc` };
}

export function newKey(name: string, rest: Partial<NewKey> = {}): NewKey {
  return { id: `key_${name}`, name, mode: 'live', scopes: ['verify', 'rank'], secret: newSecret(name), ...rest };
}

let changes = 0;

/** A pending promotion of member 7, each call under an id of its own. */
export function newChange(rest: Partial<RankChange> = {}): RankChange {
  changes += 1;
  return {
    id: `chg_${changes}`,
    group: 'the simulated group',
    state: 'pending',
    code: null,
    message: '',
    rankeeId: 7,
    rankeeName: 'Builder',
    rankerId: 0,
    rankerName: 'Server',
    newRankId: 20,
    roleId: 300,
    rolesBefore: [100, 200],
    rolesAfter: [100, 300],
    aim: 'apply',
    by: 'key:key_main',
    keyId: 'key_main',
    placeId: 42,
    dryRun: false,
    demotion: false,
    topRank: 20,
    requestedAt: Date.UTC(2026, 0, 1),
    ...rest,
  };
}

export const applied: ChangeOutcome = { state: 'applied', code: null, message: 'Done.', rolesAfter: [100, 300] };
export const refused: ChangeOutcome = {
  state: 'refused',
  code: 'above_acting_account',
  message: 'Not allowed.',
  rolesAfter: [100, 200],
};
export const unknown: ChangeOutcome = { state: 'unknown', code: 'outcome_unknown', message: 'Not confirmed.' };

/** A member's demotion, not begun yet. */
export function newDemotion(rankeeId: number, rest: Partial<RankChange> = {}): RankChange {
  return newChange({ rankeeId, demotion: true, newRankId: 1, ...rest });
}
