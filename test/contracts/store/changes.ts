import { describe, expect, test } from 'vitest';
import { reopened } from '../../../src/core/change-state.ts';
import type { RankChange } from '../../../src/core/model.ts';
import {
  applied,
  awkwardText,
  begin,
  finish,
  largestId,
  newChange,
  newKey,
  operate,
  operator,
  record,
  refused,
  startCompensating,
  unknown,
} from './samples.ts';
import type { StoreCase } from './store-case.ts';

export function changeContract(at: StoreCase): void {
  const beginHere = (change: RankChange, after?: string) => begin(at.store, change, { after });
  const dayMs = 24 * 3_600_000;

  describe('rank changes', () => {
    test('a change is read exactly as it was stored, in every field', async () => {
      const change = newChange({
        rankeeId: largestId,
        rankeeName: awkwardText,
        rankerId: largestId - 1,
        rankerName: awkwardText,
        newRankId: largestId - 2,
        roleId: largestId - 2,
        rolesBefore: [1, largestId - 3],
        rolesAfter: [1, largestId - 2],
        placeId: largestId,
        command: awkwardText,
        oldRankName: awkwardText,
        prefix: ':',
        webhookHost: 'example.com',
        reason: awkwardText,
        oldRoleId: largestId - 3,
        kind: 'role_removed',
        roles: [{ id: largestId - 3, name: awkwardText, rank: 254 }],
        demotion: true,
        topRank: 255,
        idempotencyKey: awkwardText,
        fingerprint: 'ab12',
      });
      expect(await beginHere(change)).toBe(true);
      expect(await at.other.findChange(change.id)).toStrictEqual(change);
    });

    test('an omitted field is absent, not null', async () => {
      const { keyId, placeId, roleId, ...change } = newChange({
        state: 'refused',
        code: 'unknown_rank',
        finishedAt: 5,
      });
      await record(at.store, change);
      expect(await at.store.findChange(change.id)).toStrictEqual(change);
      expect(await at.store.findChange('chg_no')).toBeUndefined();
    });

    test('a second change with the same id is a conflict', async () => {
      const change = newChange({ state: 'refused' });
      await record(at.store, change);
      await expect(record(at.store, change)).rejects.toMatchObject({ code: 'conflict' });
    });

    test('are counted by state since a time, without dry runs', async () => {
      for (const [rankeeId, rest] of [
        { state: 'applied', requestedAt: 999 } as const,
        { state: 'applied', requestedAt: 1_000 } as const,
        { state: 'applied', requestedAt: 1_001, dryRun: true } as const,
        { state: 'refused', requestedAt: 2_000 } as const,
        { state: 'pending', requestedAt: 3_000 } as const,
      ].entries()) {
        await record(at.store, newChange({ rankeeId, ...rest }));
      }
      const none = { pending: 0, applied: 0, refused: 0, failed: 0, unknown: 0 };
      expect(await at.other.countChanges(1_000)).toEqual({ ...none, pending: 1, applied: 1, refused: 1 });
      expect(await at.other.countChanges(4_000)).toEqual(none);
      expect(await at.other.countChanges(0, 'another group')).toEqual(none);
      expect(await at.other.countChanges(1_000, newChange().group)).toMatchObject({ pending: 1, applied: 1 });
    });

    test('lists are ordered newest first by arrival, even if the clock was set back', async () => {
      const first = newChange({ state: 'applied', requestedAt: 9_000 });
      const second = newChange({ state: 'refused', requestedAt: 1_000, rankeeId: 8, keyId: 'key_other' });
      const third = newChange({ rankeeId: 9, requestedAt: 5_000 });
      for (const change of [first, second, third]) await record(at.store, change);
      const ids = async (filter: object) => (await at.store.listChanges({ limit: 9, ...filter })).map(({ id }) => id);
      expect(await ids({})).toEqual([third.id, second.id, first.id]);
      expect(await ids({ limit: 2 })).toEqual([third.id, second.id]);
      expect(await ids({ rankeeId: 7 })).toEqual([first.id]);
      expect(await ids({ keyId: 'key_main' })).toEqual([third.id, first.id]);
      expect(await ids({ states: ['applied', 'refused'] })).toEqual([second.id, first.id]);
      expect(await ids({ states: ['applied', 'pending'], keyId: 'key_main', rankeeId: 9 })).toEqual([third.id]);
      expect(await ids({ states: [] })).toEqual([]);
    });

    test('lists and pages filter by ranker, place, operator, undo and time', async () => {
      const {
        keyId: _key,
        placeId: _place,
        ...operators
      } = newChange({ by: operator, state: 'applied', requestedAt: 2_000 });
      const byHand = { ...operators, undoOf: 'chg_before', undoId: 'undo_x' };
      const asked = newChange({ state: 'applied', rankerId: 5, placeId: 43, requestedAt: 1_000 });
      for (const change of [byHand, asked]) await record(at.store, change);
      const ids = async (filter: object) => {
        const page = await at.other.pageChanges({ limit: 9, ...filter });
        expect(await at.store.listChanges({ limit: 9, ...filter })).toStrictEqual(page.changes);
        return page.changes.map(({ id }) => id);
      };
      expect(await ids({ rankerId: 5 })).toEqual([asked.id]);
      expect(await ids({ rankerId: 0 })).toEqual([byHand.id]);
      expect(await ids({ placeId: 43 })).toEqual([asked.id]);
      expect(await ids({ by: operator })).toEqual([byHand.id]);
      expect(await ids({ by: 'cli' })).toEqual([byHand.id]);
      expect(await ids({ by: operator.slice(0, -1) })).toEqual([]);
      expect(await ids({ undoId: 'undo_x' })).toEqual([byHand.id]);
      expect(await ids({ ids: [byHand.id, 'chg_none'] })).toEqual([byHand.id]);
      expect(await ids({ ids: [] })).toEqual([]);
      expect(await ids({ since: 1_001 })).toEqual([byHand.id]);
      expect(await ids({ since: 2_000, until: 2_001 })).toEqual([byHand.id]);
      expect(await ids({ until: 2_000 })).toEqual([asked.id]);
      expect(await at.store.findChange(byHand.id)).toStrictEqual(byHand);
    });

    test('pages have no gaps, even while new changes arrive', async () => {
      const all = Array.from({ length: 5 }, () => newChange({ state: 'refused' }));
      for (const change of all) await record(at.store, change);
      const first = await at.store.pageChanges({ limit: 2 });
      await record(at.store, newChange({ state: 'refused' }));
      const second = await at.store.pageChanges({ limit: 2, cursor: first.next });
      const third = await at.store.pageChanges({ limit: 2, cursor: second.next });
      expect([first, second, third].flatMap(({ changes }) => changes)).toStrictEqual(all.toReversed());
      expect(third).not.toHaveProperty('next');
    });

    test('the latest change to a member is the last to arrive, whatever the clock showed', async () => {
      expect(await at.store.latestChange(7)).toStrictEqual({});
      await record(at.store, newChange({ state: 'applied', requestedAt: 9_000 }));
      const last = newChange({ state: 'refused', requestedAt: 1_000 });
      await record(at.store, last);
      await record(at.store, newChange({ state: 'refused', rankeeId: 8 }));
      expect(await at.other.latestChange(7)).toStrictEqual({ latestId: last.id });
    });

    test('an open change is returned in addition to newer ones, until it is finished', async () => {
      const open = newChange();
      await beginHere(open);
      const newer = newChange({ state: 'refused' });
      await record(at.store, newer);
      expect(await at.other.latestChange(7)).toStrictEqual({
        latestId: newer.id,
        open: { change: open, holder: 'other' },
      });
      await finish(at, open.id, applied);
      expect(await at.other.latestChange(7)).toStrictEqual({ latestId: newer.id });
    });

    test('a change does not begin if an earlier read may be stale', async () => {
      const finished = newChange({ state: 'refused' });
      await record(at.store, finished);
      expect(await beginHere(newChange())).toBe(false);
      expect(await beginHere(newChange(), 'chg_no')).toBe(false);
      expect(await at.store.listChanges({ limit: 9 })).toHaveLength(1);
      expect(await beginHere(newChange(), finished.id)).toBe(true);
    });

    test('if several handles begin a change to one member at once, exactly one succeeds', async () => {
      const stores = [at.store, at.other, at.store, at.other];
      const begun = await Promise.all(stores.map((store) => begin(store, newChange(), { after: undefined })));
      expect(begun.filter(Boolean)).toHaveLength(1);
      expect(await at.store.listChanges({ limit: 9 })).toHaveLength(1);
      expect(await beginHere(newChange({ rankeeId: 8 }))).toBe(true);
    });

    test('a change begins only if its key is valid and its place is whitelisted and enabled', async () => {
      const expiresAt = at.clock.now() + 1_000;
      await operate(at).createKey(newKey('main', { expiresAt }), operator);
      await operate(at).createKey(newKey('other'), operator);
      await operate(at).addEntries({ keyId: 'key_main', placeIds: [42, 43] }, operator);
      await operate(at).addEntries({ keyId: 'key_other', placeIds: [44] }, operator);
      const from = (placeId: number, rest: Partial<RankChange> = {}) =>
        beginHere(newChange({ rankeeId: placeId, placeId, ...rest }));
      await operate({ ...at, store: at.other }).setEntriesActive(
        { keyId: 'key_main', placeIds: [43], active: false },
        operator,
      );
      const code = 'place_not_whitelisted';
      await expect(from(43)).rejects.toMatchObject({ code, hint: expect.stringContaining('whitelist enable 43') });
      await expect(from(44)).rejects.toMatchObject({ code, hint: expect.stringContaining('whitelist add 44') });
      await at.clock.advance(999);
      expect(await from(42)).toBe(true);
      await at.clock.advance(1);
      const expired = { code: 'invalid_key', details: { reason: 'expired', keyId: 'key_main' } };
      await expect(from(42, { rankeeId: 8 })).rejects.toMatchObject(expired);
      expect(await from(44, { keyId: 'key_other' })).toBe(true);
      expect(await at.store.listChanges({ limit: 9 })).toHaveLength(2);
    });

    test('a member with an unknown change gets no new change until it is reconciled', async () => {
      const change = newChange();
      await beginHere(change);
      await finish(at, change.id, unknown);
      expect(await beginHere(newChange(), change.id)).toBe(false);
      await finish(at, change.id, refused);
      expect(await beginHere(newChange(), change.id)).toBe(true);
    });

    test('a change ends only once, and its first outcome is final', async () => {
      const change = newChange({ idempotencyKey: 'again' });
      await beginHere(change);
      await at.clock.advance(700);
      expect(await finish(at, change.id, applied)).toBe(true);
      expect(await finish({ ...at, store: at.other }, change.id, refused)).toBe(false);
      expect(await finish(at, 'chg_no', refused)).toBe(false);
      expect(await at.store.findChange(change.id)).toStrictEqual({ ...change, ...applied, finishedAt: at.clock.now() });
    });

    test('a change that becomes unknown retains its target roles and stays open', async () => {
      const change = newChange();
      await beginHere(change);
      expect(await finish(at, change.id, { ...unknown, rolesAfter: [100] })).toBe(true);
      const stored = { ...change, ...unknown };
      expect(await at.store.findChange(change.id)).toStrictEqual(stored);
      expect(await at.store.openChanges()).toStrictEqual([{ change: stored, holder: 'none' }]);
      expect(await finish(at, change.id, unknown)).toBe(true);
      expect(await finish(at, change.id, applied)).toBe(true);
      expect(await at.store.findChange(change.id)).toMatchObject({ ...applied, finishedAt: at.clock.now() });
      expect(await at.store.openChanges()).toEqual([]);
    });

    test('a compensation is stored with its reason, even if it becomes unknown', async () => {
      const change = newChange();
      const why = { code: 'above_acting_account', message: 'Not allowed.' } as const;
      await beginHere(change);
      await startCompensating(at, change.id, why);
      const marked = { ...change, ...why, phase: 'compensate' };
      expect(await at.other.findChange(change.id)).toStrictEqual(marked);
      await finish(at, change.id, unknown);
      expect(await at.other.findChange(change.id)).toStrictEqual({ ...marked, state: 'unknown' });
      await finish(at, change.id, refused);
      await expect(startCompensating(at, change.id, why)).rejects.toMatchObject({ code: 'conflict' });
    });

    test('open changes are listed oldest first', async () => {
      const [first, second] = [newChange({ requestedAt: 9_000 }), newChange({ rankeeId: 8, requestedAt: 1_000 })];
      await beginHere(first);
      await beginHere(second);
      await record(at.store, newChange({ rankeeId: 9, state: 'failed' }));
      await finish(at, first.id, unknown);
      expect((await at.other.openChanges()).map(({ change }) => change.id)).toEqual([first.id, second.id]);
    });

    test('the time of the last applied change ignores refusals, dry runs and ineffective repeats', async () => {
      const finished = { state: 'applied', finishedAt: 9_000 } as const;
      await record(at.store, newChange({ ...finished, dryRun: true }));
      await record(at.store, newChange({ ...finished, rolesAfter: [100, 200] }));
      await record(at.store, newChange({ ...finished, state: 'refused' }));
      await record(at.store, newChange({ ...finished, rankeeId: 8 }));
      expect(await at.store.lastAppliedAt(7)).toBeUndefined();
      const { latestId } = await at.store.latestChange(7);
      const change = newChange();
      await beginHere(change, latestId);
      expect(await at.store.lastAppliedAt(7)).toBeUndefined();
      await finish(at, change.id, applied);
      expect(await at.other.lastAppliedAt(7)).toBe(at.clock.now());
      await record(at.store, newChange({ state: 'applied', finishedAt: 1_000 })); // as if the clock had been set back
      expect(await at.other.lastAppliedAt(7)).toBe(1_000);
    });

    test('the last written change to a member is found behind any number of changes without writes', async () => {
      const finished = { state: 'applied', finishedAt: 9_000 } as const;
      const quiet = { ...finished, rolesAfter: [100, 200] };
      const last = async () => (await at.other.lastWritten(7))?.id;
      for (const rest of [quiet, { ...finished, dryRun: true }, { ...finished, rankeeId: 8 }])
        await record(at.store, newChange(rest));
      expect(await last()).toBeUndefined();

      const written = newChange(finished);
      await record(at.store, written);
      for (let more = 0; more < 30; more += 1) await record(at.store, newChange({ ...quiet, state: 'refused' }));
      expect(await at.other.lastWritten(7)).toStrictEqual(written);

      const { latestId } = await at.store.latestChange(7);
      const reversed = newChange();
      await beginHere(reversed, latestId);
      expect(await last()).toBe(written.id);
      await startCompensating(at, reversed.id, { code: 'platform_rejected', message: 'No.' });
      await finish(at, reversed.id, unknown);
      expect(await last()).toBe(written.id);
      await finish(at, reversed.id, refused);
      expect(await last()).toBe(reversed.id);

      const finishedLater = newChange({ state: 'failed', rolesAfter: [100, 300], finishedAt: 1_000 });
      await record(at.store, finishedLater);
      expect(await last()).toBe(finishedLater.id);
    });

    test('an idempotency key is unique per API key for a day; then it identifies the newer change', async () => {
      const idempotencyKey = 'abc';
      const finished = { state: 'applied', idempotencyKey } as const;
      const old = newChange({ ...finished, requestedAt: at.clock.now() });
      await record(at.store, old);
      await at.clock.advance(dayMs);
      const again = () => newChange({ ...finished, requestedAt: at.clock.now() });
      await expect(record(at.store, again())).rejects.toMatchObject({ code: 'conflict' });
      const pending = newChange({ idempotencyKey });
      await expect(begin(at.other, pending, { after: old.id })).rejects.toMatchObject({ code: 'conflict' });
      await record(at.store, { ...again(), keyId: 'key_other' });

      await at.clock.advance(1);
      const newer = again();
      await record(at.store, newer);
      const claim = { keyId: 'key_main', idempotencyKey, group: newer.group, fingerprint: 'ff', since: 0 };
      expect(await at.store.claimIdempotencyKey(claim)).toStrictEqual({ is: 'used', change: newer });
      expect(await at.store.findChange(old.id)).not.toHaveProperty('idempotencyKey');
    });

    test('an ended change can be reopened while it is the newest change to its member', async () => {
      const change = newChange();
      const open = (id: string) => at.other.reopenChange(id, (stored) => reopened(stored, change, at.clock.now()));
      await beginHere(change);
      expect(await open(change.id)).toBeUndefined();
      await finish(at, change.id, applied);
      expect(await open(change.id)).toMatchObject({
        state: 'unknown',
        code: 'outcome_unknown',
        rolesAfter: [100, 300],
      });
      expect(await at.store.findChange(change.id)).not.toHaveProperty('finishedAt');
      expect(await at.store.openChanges()).toMatchObject([{ change: { id: change.id }, holder: 'none' }]);
      expect((await at.store.listAudit({ limit: 1 }))[0]).toMatchObject({ action: 'rank.unknown', subject: change.id });

      await finish(at, change.id, applied);
      const next = newChange();
      await record(at.store, { ...next, state: 'refused', code: 'cooldown', rolesAfter: next.rolesBefore });
      expect(await open(change.id)).toBeUndefined();
      expect(await open(next.id)).toMatchObject({ state: 'unknown', rolesAfter: [100, 300] });
      expect(await open(next.id)).toBeUndefined();
      expect(await open('chg_nobody')).toBeUndefined();
    });

    test('an outcome can release the idempotency key', async () => {
      const change = newChange({ idempotencyKey: 'abc' });
      await beginHere(change);
      await finish(at, change.id, { ...refused, forgetIdempotencyKey: true });
      expect(await at.store.findChange(change.id)).not.toHaveProperty('idempotencyKey');
      expect(await beginHere(newChange({ idempotencyKey: 'abc' }), change.id)).toBe(true);
    });

    test('the audit records every step of a change, with its actor, member, reason and roles', async () => {
      const change = newChange();
      const why = { code: 'platform_rejected', message: 'No.' } as const;
      await beginHere(change);
      await startCompensating(at, change.id, why);
      await finish(at, change.id, unknown);
      await finish(at, change.id, unknown);
      await finish(at, change.id, refused);
      const dry = newChange({ state: 'applied', dryRun: true, rankeeId: 8 });
      await record(at.store, dry);
      const steps = (await at.store.listAudit({ limit: 9 })).reverse();
      const detail = {
        rankeeId: 7,
        code: null,
        rolesBefore: [100, 200],
        rolesAfter: [100, 300],
        keyId: 'key_main',
        placeId: 42,
      };
      expect(steps.map(({ action, subject, by, detail }) => ({ action, subject, by, detail }))).toEqual([
        { action: 'rank.begin', subject: change.id, by: change.by, detail },
        { action: 'rank.compensate', subject: change.id, by: change.by, detail: { ...detail, code: why.code } },
        { action: 'rank.unknown', subject: change.id, by: change.by, detail: { ...detail, code: unknown.code } },
        {
          action: 'rank.refused',
          subject: change.id,
          by: change.by,
          detail: { ...detail, code: refused.code, rolesAfter: refused.rolesAfter },
        },
        { action: 'rank.applied', subject: dry.id, by: dry.by, detail: { ...detail, rankeeId: 8, dryRun: true } },
      ]);
    });
  });
}
