import { RankdError } from '../base/errors.ts';
import { refusalOfDeclared } from './declarations.ts';
import {
  type Actor,
  keyAdopted,
  keyCreated,
  keyPaused,
  keyResumed,
  keyRevoked,
  keyRotated,
  keyRulesSet,
  planChanged,
  type Verdict,
  workspaceActivated,
} from './events.ts';
import type { Key, KeyMode, KeyRules, NewSecret, Plan, Scope, Workspace } from './model.ts';

export interface NewKey extends KeyRules {
  id: string;
  name: string;
  mode: KeyMode;
  scopes: Scope[];
  expiresAt?: number;
  isSimulated?: boolean;
  /** Absent for a Discord key, which has no secret. */
  secret?: NewSecret;
}

/** The changes to a key. Omitted fields stay as they are. Times are epoch milliseconds. */
export interface KeyEdit {
  rules?: KeyRulesChange;
  revokedAt?: number;
  /** null resumes the key. */
  pausedAt?: number | null;
  resumedAt?: number;
  /** null makes a key that was created for the simulated group valid for the real one, too. */
  isSimulated?: null;
  /** A new secret. Older ones are accepted until `olderUntil`, or until their own expiry if that is earlier. */
  secret?: NewSecret & { olderUntil: number };
}

export type JudgeKey = (key: Key) => Verdict<KeyEdit>;

/** Judges the creation of a key. `namesake`: an unrevoked key that already has the name. */
export function judgeNewKey(key: NewKey, actor: Actor): (namesake: Key | undefined) => Verdict<NewKey> {
  return (namesake) => {
    if (namesake === undefined) return { change: key, events: [keyCreated(key, rulesOf(key), actor)] };
    const refusal = new RankdError('already_exists', `A key named ${key.name} already exists.`, {
      hint: `see it with \`rankd key show ${key.name}\`, or pass --if-not-exists`,
    });
    return { refusal };
  };
}

/**
 * Judges the rotation of a key. Its old secrets are accepted until `oldExpiresAt` (epoch milliseconds) at the latest.
 */
export function judgeRotation(
  { secret, oldExpiresAt }: { secret: NewSecret; oldExpiresAt: number },
  actor: Actor,
): JudgeKey {
  return (key) => {
    const refusal = refusalOfOwn(key) ?? refusalOfRevoked(key, 'it cannot get a new secret') ?? refusalOfSecret(key);
    if (refusal !== undefined) return { refusal };
    return {
      change: { secret: { ...secret, olderUntil: oldExpiresAt } },
      events: [keyRotated(key, oldExpiresAt, actor)],
    };
  };
}

export function judgeRules(rules: KeyRulesChange, actor: Actor): JudgeKey {
  return (key) => {
    const refusal = refusalOfOwn(key) ?? refusalOfRevoked(key, 'it cannot be changed') ?? refusalOfSystem(key, rules);
    if (refusal !== undefined) return { refusal };
    return { change: { rules }, events: [keyRulesSet(key.id, changedRules(key, rules), actor)] };
  };
}

/**
 * Judges the adoption of a key that was created for the simulated group. An adopted key is also valid for the real
 * group.
 */
export function judgeAdoption(actor: Actor): JudgeKey {
  return (key) => {
    const refusal = refusalOfRevoked(key, 'it cannot be adopted');
    if (refusal !== undefined) return { refusal };
    return { change: { isSimulated: null }, events: [keyAdopted(key.id, actor)] };
  };
}

export function judgeRevocation(actor: Actor): JudgeKey {
  return (key) => {
    const refusal = refusalOfOwn(key);
    if (refusal !== undefined) return { refusal };
    return { change: { revokedAt: key.revokedAt ?? actor.at }, events: [keyRevoked(key, {}, actor)] };
  };
}

export function judgePause({ paused, reason }: { paused: boolean; reason: string }, actor: Actor): JudgeKey {
  return (key) => {
    const refusal = paused ? refusalOfRevoked(key, 'it cannot be paused') : undefined;
    if (refusal !== undefined) return { refusal };
    return paused
      ? { change: { pausedAt: key.pausedAt ?? actor.at }, events: [keyPaused(key, reason, actor)] }
      : { change: { pausedAt: null, resumedAt: actor.at }, events: [keyResumed(key, reason, actor)] };
  };
}

function refusalOfOwn(key: Key): RankdError | undefined {
  return refusalOfDeclared(`Key "${key.name}"`, key);
}

export function refusalOfSecret({ name, isForDiscord }: Key): RankdError | undefined {
  if (!isForDiscord) return undefined;
  return new RankdError('conflict', `Key ${name} is for Discord: it has no secret to replace.`, {
    hint: `to stop it: rankd key pause ${name}`,
  });
}

function refusalOfSystem({ name, isForDiscord }: Key, { isSystem }: KeyRulesChange): RankdError | undefined {
  if (!isForDiscord || !isSystem) return undefined;
  return new RankdError('conflict', `Key ${name} is for Discord, where a person requests every change.`, {
    hint: 'leave out --system',
  });
}

function refusalOfRevoked({ name, revokedAt }: Key, consequence: string): RankdError | undefined {
  if (revokedAt === undefined) return undefined;
  return new RankdError('conflict', `Key ${name} is revoked, so ${consequence}.`, {
    hint: 'create a new key with `rankd key create NAME`',
  });
}

export function judgeWorkspace(
  { active, plan }: { active?: boolean | undefined; plan?: Plan | undefined },
  actor: Actor,
): (workspace: Workspace) => Verdict<Workspace> {
  return (workspace) => ({
    change: { ...workspace, active: active ?? workspace.active, plan: plan ?? workspace.plan },
    events: [
      ...(active === undefined ? [] : [workspaceActivated(workspace.id, active, actor)]),
      ...(plan === undefined ? [] : [planChanged(workspace.id, { from: workspace.plan, to: plan }, actor)]),
    ],
  });
}

/** The rules to set. null removes a rule; omitted rules stay as they are. */
export type KeyRulesChange = { [Rule in keyof KeyRules]?: KeyRules[Rule] | null };

export const ruleNames = [
  'maxRank',
  'minRank',
  'maxRankRole',
  'minRankRole',
  'direction',
  'selfRank',
  'isSystem',
  'isPrivileged',
  'isAnyPlace',
  'ratePerMinute',
  'isForDiscord',
] as const satisfies ReadonlyArray<keyof KeyRules>;

export function rulesOf(key: KeyRules): KeyRules {
  return Object.fromEntries(ruleNames.flatMap((rule) => (key[rule] === undefined ? [] : [[rule, key[rule]]])));
}

function changedRules(before: KeyRules, change: KeyRulesChange): Record<string, { from: unknown; to: unknown }> {
  const changed = ruleNames.filter((rule) => change[rule] !== undefined && change[rule] !== (before[rule] ?? null));
  return Object.fromEntries(changed.map((rule) => [rule, { from: before[rule] ?? null, to: change[rule] }]));
}

/** Returns the change that sets these rules and removes all others. */
export function exactly(rules: KeyRules): KeyRulesChange {
  return { ...Object.fromEntries(ruleNames.map((rule) => [rule, null])), ...rules };
}
