import { describe, expect, test } from 'vitest';
import { breakBetween, chainStart } from '../../../src/core/audit.ts';
import { backupAction } from '../../../src/core/events.ts';
import type { AuditFilter } from '../../../src/ports/index.ts';
import { awkwardText, operate } from './samples.ts';
import type { StoreCase } from './store-case.ts';

export function auditContract(at: StoreCase): void {
  const append = (subject: string) =>
    operate(at).appendAudit({
      by: 'daemon',
      action: 'caller.refused',
      subject,
      detail: { text: awkwardText, count: 3 },
    });

  describe('the audit', () => {
    test('an event is read as it was written, with its number and time', async () => {
      await append('a');
      expect(await at.other.listAudit({ limit: 9 })).toStrictEqual([
        {
          id: expect.any(Number),
          at: at.clock.now(),
          by: 'daemon',
          action: 'caller.refused',
          subject: 'a',
          detail: { text: awkwardText, count: 3 },
        },
      ]);
    });

    test('the time of the last backup is that of the newest recorded one', async () => {
      expect(await at.store.lastBackupAt()).toBeUndefined();
      const record = () => operate(at).appendAudit({ by: 'daemon', action: backupAction, subject: 'x', detail: {} });
      await record();
      await append('another event');
      expect(await at.other.lastBackupAt()).toBe(at.clock.now());
      await at.clock.advance(1_000);
      await record();
      expect(await at.other.lastBackupAt()).toBe(at.clock.now());
    });

    test('is listed newest first, from a given time or event, up to the limit', async () => {
      await append('a');
      await at.clock.advance(1_000);
      await append('b');
      await append('c');
      const list = (filter: object) => at.store.listAudit({ limit: 9, ...filter });
      const subjects = async (filter: object) => (await list(filter)).map(({ subject }) => subject);
      expect(await subjects({})).toEqual(['c', 'b', 'a']);
      expect(await subjects({ limit: 2 })).toEqual(['c', 'b']);
      expect(await subjects({ since: at.clock.now() })).toEqual(['c', 'b']);
      const [, b] = await list({});
      expect(await subjects({ afterId: b?.id })).toEqual(['c']);
      expect(await subjects({ afterId: b?.id, since: at.clock.now() + 1 })).toEqual([]);
    });

    test('filters by actor, action, subject and key match whole words, not prefixes', async () => {
      const events = [
        { by: 'cli:ann@host', action: 'key.create', subject: 'key_a', detail: {} },
        { by: 'cli:annika@host', action: 'key.revoke', subject: 'key_ab', detail: {} },
        { by: 'key:key_a', action: 'rank.refused', subject: 'chg_1', detail: { keyId: 'key_a' } },
        { by: 'cli:ann@host', action: 'whitelist.add', subject: '42', detail: { keyId: 'key_a' } },
        { by: 'daemon', action: 'keyring.open', subject: 'x', detail: { keyId: 'key_ab' } },
      ];
      for (const event of events) await operate(at).appendAudit(event);
      const found = async (filter: Omit<AuditFilter, 'limit'>) =>
        (await at.store.listAudit({ ...filter, limit: 9, oldestFirst: true })).map(({ subject }) => subject);
      expect(await found({ by: 'cli' })).toEqual(['key_a', 'key_ab', '42']);
      expect(await found({ by: 'cli:ann@host' })).toEqual(['key_a', '42']);
      expect(await found({ by: 'cli:ann' })).toEqual([]);
      expect(await found({ action: 'key' })).toEqual(['key_a', 'key_ab']);
      expect(await found({ action: 'rank.refused' })).toEqual(['chg_1']);
      expect(await found({ subject: '42' })).toEqual(['42']);
      expect(await found({ keyId: 'key_a' })).toEqual(['key_a', 'chg_1', '42']);
      expect(await found({ keyId: 'key_a', by: 'cli', action: 'key' })).toEqual(['key_a']);
    });

    test('can be read in pages in both directions, and up to a time', async () => {
      for (const subject of ['a', 'b', 'c']) {
        await append(subject);
        await at.clock.advance(1_000);
      }
      const found = async (filter: Omit<AuditFilter, 'limit'>) => {
        const events = await at.store.listAudit({ ...filter, limit: 2 });
        return events.map(({ subject }) => subject);
      };
      const [first] = await at.store.listAudit({ limit: 1, oldestFirst: true });
      expect(await found({ oldestFirst: true })).toEqual(['a', 'b']);
      expect(await found({ oldestFirst: true, afterId: first?.id ?? 0 })).toEqual(['b', 'c']);
      expect(await found({ beforeId: (first?.id ?? 0) + 2 })).toEqual(['b', 'a']);
      expect(await found({ until: at.clock.now() - 1_000 })).toEqual(['b', 'a']);
      expect(await found({ since: at.clock.now() - 2_000, until: at.clock.now() - 1_000 })).toEqual(['b']);
    });

    test('is one chain for all writers: every row follows the previous one', async () => {
      await Promise.all(
        ['a', 'b', 'c', 'd'].map((subject, index) =>
          operate({ ...at, store: index % 2 ? at.store : at.other }).appendAudit({
            by: 'daemon',
            action: 'x',
            subject,
            detail: { text: awkwardText, nothing: undefined, n: -0.5 },
          }),
        ),
      );
      await operate(at).updateWorkspace({ active: false }, 'cli:ann@host');
      const { anchor, rows, lastId } = await at.other.auditChain({ afterId: 0, limit: 9 });
      expect(anchor).toEqual(chainStart);
      expect(rows.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5]);
      expect(lastId).toBe(5);
      expect(rows.map((row, index) => breakBetween(rows[index - 1] ?? chainStart, row))).toEqual(
        rows.map(() => undefined),
      );
      expect((await at.store.auditChain({ afterId: 2, limit: 2 })).rows).toEqual(rows.slice(2, 4));
    });
  });
}
