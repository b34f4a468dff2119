import { createHash } from 'node:crypto';
import { systemClock } from '../../../src/base/clock.ts';
import type { Caller } from '../../../src/core/access.ts';
import { judgeBegin, type MemberLimit } from '../../../src/core/begin.ts';
import type { ChangeOutcome } from '../../../src/core/change-state.ts';
import { judgeDeclarations, type NewDeclaration } from '../../../src/core/declared-keys.ts';
import { changeEvent } from '../../../src/core/events.ts';
import {
  judgeNewKey,
  judgePause,
  judgeRevocation,
  judgeRotation,
  judgeRules,
  judgeWorkspace,
  type KeyRulesChange,
  type NewKey,
} from '../../../src/core/key-changes.ts';
import type { AuditEvent, Plan, RankChange } from '../../../src/core/model.ts';
import { policyRules } from '../../../src/core/policy.ts';
import type { PolicyCase } from '../../../src/core/rules/rule.ts';
import { judgeActive, judgeAdding, judgeRemoval } from '../../../src/core/whitelist.ts';
import type { KeyRecord, NewSecret, Store } from '../../../src/ports/index.ts';
import { recordCompensating, recordOutcome } from '../../../src/usecases/change/change-record.ts';
import { openPolicy } from '../../support/arbitrary-group.ts';

export const operator = 'cli:ann@host';
export const largestId = 2 ** 53 - 1;
export const awkwardText = `O'Brien "the\n\t\\ 👩‍🚀 %_; DROP TABLE keys; --\u0000é`;

export function newSecret(text: string): NewSecret {
  return { hash: createHash('sha256').update(text).digest('hex'), masked: `rk_live_${text.slice(0, 3)}…abc` };
}

/** Looks up the key with the secret `newSecret(text)`, as a new request would. */
export async function lookUp(store: Store, text: string, placeId = 42): Promise<KeyRecord | undefined> {
  await store.freshen();
  return store.lookUpKey({ hash: newSecret(text).hash, placeId });
}

export function newKey(name: string, rest: Partial<NewKey> = {}): NewKey {
  return { id: `key_${name}`, name, mode: 'live', scopes: ['verify', 'rank'], secret: newSecret(name), ...rest };
}

let changes = 0;

/** Returns a pending promotion of member 7 with a new id. */
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
    phase: 'forward',
    by: 'key:key_main',
    keyId: 'key_main',
    placeId: 42,
    dryRun: false,
    demotion: false,
    topRank: 20,
    privileged: false,
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

export function newDemotion(rankeeId: number, rest: Partial<RankChange> = {}): RankChange {
  return newChange({ rankeeId, demotion: true, newRankId: 1, ...rest });
}

const member = { id: 100, name: 'Member', rank: 1, kind: 'base' } as const;
const builder = { id: 200, name: 'Builder', rank: 10, kind: 'custom' } as const;
const officer = { id: 300, name: 'Officer', rank: 20, kind: 'custom' } as const;

/** Returns a policy case for a promotion that all rules allow, unless `policy` makes them stricter. */
export function policyCaseOf(request: RankChange, policy: Partial<PolicyCase['policy']> = {}): PolicyCase {
  return {
    policy: { ...openPolicy, ...policy },
    key: undefined,
    request,
    scheme: { roles: [member, builder, officer], ladder: undefined, rankOne: 'custom' },
    plan: {
      target: officer,
      goal: { from: [100, 200], to: [100, 300] },
      steps: [
        { kind: 'assign', roleId: 300 },
        { kind: 'unassign', roleId: 200 },
      ],
      highestBefore: builder,
    },
    ...{ acting: undefined, sinceLastChangeMs: undefined, sinceRankersLastChangeMs: undefined },
  };
}

export interface Beginning {
  /** The id of the change that was the member's newest when rankd read the member's roles. */
  after?: string | undefined;
  secretId?: string;
  limits?: readonly MemberLimit[];
  policy?: Partial<PolicyCase['policy']>;
}

/** Returns a caller without restrictions, for tests that are not about keys. */
function callerOf({ keyId = 'key_main', placeId = 42 }: RankChange): Caller {
  return {
    workspace: { id: 'ws_1', name: 'default', plan: 'top', active: true, createdAt: 0 },
    key: { id: keyId, name: 'main', mode: 'live', scopes: ['rank', 'suspend', 'roles'], createdAt: 0, secrets: [] },
    entry: { keyId, placeId, active: true, note: '', addedAt: 0 },
  };
}

/** Begins a change if core allows it. Resolves with false if the change is stale. Throws core's refusal. */
export async function begin(store: Store, change: RankChange, beginning: Beginning = {}): Promise<boolean> {
  const { after, secretId, limits = [], policy } = beginning;
  const recheck = policyRules;
  const policyCase = policyCaseOf(change, policy);
  const verdict = await store.beginChange(change, { secretId, windows: limits }, (facts) =>
    judgeBegin({ change, after, limits, policyCase, recheck }, { ...facts, caller: facts.caller ?? callerOf(change) }),
  );
  if (verdict.do === 'refuse') throw verdict.error;
  return verdict.do === 'begin';
}

type StoreAndClock = Parameters<typeof recordOutcome>[0];

/**
 * Takes over an open change if necessary, and records its outcome. Resolves with false if the store does not hold the
 * change.
 */
export async function finish(ports: StoreAndClock, changeId: string, outcome: ChangeOutcome): Promise<boolean> {
  await ports.store.takeOver(changeId);
  return (await recordOutcome(ports, changeId, outcome)) !== undefined;
}

/** Takes over an open change if necessary, and records that it is being compensated. */
export async function startCompensating(
  ports: StoreAndClock,
  ...change: [string, Parameters<typeof recordCompensating>[2]]
): Promise<void> {
  await ports.store.takeOver(change[0]);
  await recordCompensating(ports, ...change);
}

export function record(store: Store, change: RankChange): Promise<void> {
  return store.recordChange(change, [changeEvent(change, change.state, change.requestedAt)]);
}

/** Returns functions that apply core's decisions on keys, places and the workspace. `by` is the actor. */
export function operate({ store, clock = systemClock }: { store: Store; clock?: { now(): number } }) {
  const actor = (by: string) => ({ by, at: clock.now() });
  return {
    createKey: (key: NewKey, by: string) => store.createKey(key, judgeNewKey(key, actor(by))),
    rotateKey: ({ keyId, ...rotation }: { keyId: string; secret: NewSecret; oldExpiresAt: number }, by: string) =>
      store.updateKey(keyId, judgeRotation(rotation, actor(by))),
    setRules: ({ keyId, rules }: { keyId: string; rules: KeyRulesChange }, by: string) =>
      store.updateKey(keyId, judgeRules(rules, actor(by))),
    revokeKey: (keyId: string, by: string) => store.updateKey(keyId, judgeRevocation(actor(by))),
    pauseKey: ({ keyId, ...pause }: { keyId: string; paused: boolean; reason: string }, by: string) =>
      store.updateKey(keyId, judgePause(pause, actor(by))),
    declareKeys: async (declared: readonly NewDeclaration[], by: string) =>
      (await store.declareKeys(declared, judgeDeclarations(declared, actor(by)))).clashes,
    addEntries: async (places: { keyId: string; placeIds: number[]; note?: string }, by: string) => {
      const { before, after } = await store.updateEntries(places, judgeAdding(places, actor(by)));
      return after.map((entry) => ({ ...entry, added: before.every(({ placeId }) => placeId !== entry.placeId) }));
    },
    setEntriesActive: async (places: { keyId: string; placeIds: number[]; active: boolean }, by: string) =>
      (await store.updateEntries(places, judgeActive({ ...places, keyName: 'game' }, actor(by)))).after,
    removeEntries: async (places: { keyId: string; placeIds: number[] }, by: string) =>
      (await store.updateEntries(places, judgeRemoval({ ...places, keyName: 'game' }, actor(by)))).before,
    updateWorkspace: (change: { active?: boolean; plan?: Plan }, by: string) =>
      store.updateWorkspace(judgeWorkspace(change, actor(by))),
    appendAudit: ({ by, ...event }: Omit<AuditEvent, 'id' | 'at'>) => store.appendAudit({ ...event, ...actor(by) }),
  };
}
