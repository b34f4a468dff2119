import { describeRefusal, isRankdError, RankdError } from '../../base/errors.ts';
import { accessChecks, type Caller } from '../../core/access.ts';
import { refusalOfHold, scopeOf } from '../../core/holds.ts';
import type { HoldPart, Key, RankRequest, RoleChangeKind, Scope } from '../../core/model.ts';
import type { CallContext } from '../../ports/index.ts';
import { openHold } from '../holds/open-hold.ts';
import { type ApprovedChange, checkNames, checkPlan, type Examiner, planChange, rulesKindOf } from './plan-change.ts';
import type { ChangeCommand, Ranking } from './ranking.ts';

export interface TestRankCommand extends Pick<ChangeCommand, 'hold' | 'step' | 'kind'> {
  request: RankRequest;
  /** `undefined` for the operator. */
  key: Key | undefined;
  /** If `undefined`, the whitelist is not checked. */
  placeId: number | undefined;
}

export const notReached = 'not reached';

/** `skip` means that the check was not reached or had nothing to check. */
export type CheckResult = { name: string } & (
  | { state: 'ok' | 'skip'; detail: string }
  | { state: 'FAIL'; error: RankdError }
);

export interface DryRun {
  checks: CheckResult[];
  /** `undefined` if a check failed. */
  approved: ApprovedChange | undefined;
}

/** Runs every check for a rank change, in order, without changing or recording anything. */
export async function testRank(app: Ranking, command: TestRankCommand, call: CallContext): Promise<DryRun> {
  const list = new Checklist();
  const { request, key, placeId, kind, hold } = command;
  const isBegun = hold !== undefined && hold.kind !== 'lift';
  const change: { kind?: RoleChangeKind; hold?: HoldPart } = {
    ...(kind !== undefined && { kind }),
    ...(isBegun && { hold: { does: 'begin', id: '', kind: hold.kind } }),
  };
  await checkAccess(app, { key, placeId, scope: scopeOf(change) }, list);
  list.report('suspension', refusalOfHold(change, await openHold(app, request.rankeeId)));
  const caller = { by: 'cli', dryRun: true, ...(key !== undefined && { rules: key }) };
  const of = rulesKindOf(command);
  const approved = await planChange(app, command, call, list)
    .then((planned) => checkPlan(app, { request, caller, kind: of, ...planned }, call, list))
    .catch((error) => {
      if (!list.has(error)) throw error;
      return undefined;
    });
  if (of !== 'rank' && approved !== undefined)
    list.skip('steps', `does not apply to ${of === 'role' ? 'an extra role' : 'a suspension'}`);
  list.skipRest(approved === undefined ? notReached : 'nothing to change');
  return { checks: list.checks, approved: list.isClean ? approved : undefined };
}

/** Checks the key as the API would, but without its secret. */
async function checkAccess(
  { store, clock, group }: Pick<Ranking, 'store' | 'clock' | 'group'>,
  { key, placeId, scope }: Pick<TestRankCommand, 'key' | 'placeId'> & { scope: Scope },
  list: Checklist,
): Promise<void> {
  if (key === undefined) return list.skip('key', 'as the operator');
  const entries = await store.listEntries({ keyId: key.id });
  const entry = entries.find((candidate) => candidate.placeId === placeId);
  const caller: Caller = { workspace: await store.getWorkspace(), key, entry };
  const question = { scope, group: group.title, placeId, now: clock.now() };
  for (const { name, refusal } of accessChecks) {
    if (name === 'whitelist' && placeId === undefined && !key.isAnyPlace)
      list.skip(name, 'add --place PLACE to check it');
    else list.report(name, forOperator(refusal(caller, question)));
  }
}

/** Replaces the generic message of `invalid_key` with the actual reason, which only the operator is allowed to see. */
function forOperator(refusal: RankdError | undefined): RankdError | undefined {
  if (refusal?.code !== 'invalid_key' || refusal.details === undefined) return refusal;
  const { code, details, hint } = refusal;
  const why = describeRefusal(details);
  return new RankdError(code, `${why.slice(0, 1).toUpperCase()}${why.slice(1)}.`, { hint });
}

class Checklist implements Examiner {
  readonly checks: CheckResult[] = [];

  async find<T>(name: string, check: () => Promise<T>, describe: (found: T) => string): Promise<T> {
    try {
      const found = await check();
      this.checks.push({ name, state: 'ok', detail: describe(found) });
      return found;
    } catch (error) {
      if (isRankdError(error)) this.report(name, error);
      throw error;
    }
  }

  report(name: string, error: RankdError | undefined): void {
    this.checks.push(error === undefined ? { name, state: 'ok', detail: '' } : { name, state: 'FAIL', error });
  }

  skip(name: string, detail: string): void {
    this.checks.push({ name, state: 'skip', detail });
  }

  skipRest(detail: string): void {
    for (const name of checkNames) if (!this.checks.some((check) => check.name === name)) this.skip(name, detail);
  }

  has(error: unknown): boolean {
    return this.checks.some((check) => check.state === 'FAIL' && check.error === error);
  }

  get isClean(): boolean {
    return this.checks.every(({ state }) => state !== 'FAIL');
  }
}
