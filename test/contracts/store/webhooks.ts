import { describe, expect, test } from 'vitest';
import type { Delivery } from '../../../src/core/webhooks/webhook.ts';
import { judgeNewWebhook, judgeOne, type NewWebhook } from '../../../src/core/webhooks/webhook-changes.ts';
import { newChange, operate, operator, record } from './samples.ts';
import type { StoreCase } from './store-case.ts';

export function webhookContract(at: StoreCase): void {
  const actor = { by: operator, at: 0 };
  const add = async (name: string, rest: Partial<NewWebhook> = {}) => {
    const fresh: NewWebhook = {
      id: `wh_${name}`,
      name,
      kind: 'standard',
      shown: 'a/***',
      events: ['all'],
      createdAt: 5,
    };
    await at.store.updateWebhooks(judgeNewWebhook({ ...fresh, address: `https://a/${name}`, ...rest }, actor));
  };
  const find = async (name: string) => (await at.other.listWebhooks()).find((webhook) => webhook.name === name);
  const delivery = (sequence: number, rest: Partial<Delivery> = {}): Delivery => ({
    ...{ webhookId: 'wh_a', sequence, type: 'rank.changed', state: 'waiting', tries: 1, nextTryAt: 9_000 },
    ...{ firstAt: 1, lastAt: 1, ...rest },
  });
  const putDeliveries = (...put: Delivery[]) =>
    at.store.recordProgress({ webhookId: 'wh_a', sequences: [] }, () => ({ webhook: {}, put, events: [] }));

  describe('webhooks', () => {
    test('are read as they were stored and begin at the newest event, and the audit records them without the address', async () => {
      await operate(at).appendAudit({ by: 'daemon', action: 'x', subject: 'before', detail: {} });
      await add('a', { secret: 'whsec_s', mention: '77', isForGames: true, addressHash: 'h' });
      expect(await find('a')).toStrictEqual({
        ...{ id: 'wh_a', name: 'a', kind: 'standard', shown: 'a/***', address: 'https://a/a', secret: 'whsec_s' },
        ...{
          events: ['all'],
          mention: '77',
          isForGames: true,
          addressHash: 'h',
          state: 'enabled',
          cursor: 1,
          alarmCursor: 1,
        },
        ...{ createdAt: 5, failedTries: 0 },
      });
      const [event] = await at.other.listAudit({ limit: 1 });
      expect(event).toMatchObject({ action: 'webhook.add', subject: 'wh_a' });
      expect(JSON.stringify(event)).not.toMatch(/https|whsec/);
    });

    test('two concurrent edits of a webhook both apply, and names and addresses are unique', async () => {
      await add('a');
      const edit = (store: typeof at.store, field: Partial<NewWebhook>) =>
        store.updateWebhooks(judgeOne('a', (webhook) => ({ change: { ...webhook, ...field }, events: [] })));
      await Promise.all([edit(at.store, { mention: '1' }), edit(at.other, { events: ['keys'] })]);
      expect(await find('a')).toMatchObject({ mention: '1', events: ['keys'] });
      await expect(add('a')).rejects.toMatchObject({ code: 'already_exists' });
      await expect(add('b', { address: 'https://a/a' })).rejects.toMatchObject({ code: 'already_exists' });
      expect(await find('b')).toBeUndefined();
    });

    test('a webhook that is removed during a delivery stays removed, with its deliveries', async () => {
      await add('a');
      await putDeliveries(delivery(1));
      await at.other.updateWebhooks(judgeOne('a', () => ({ change: 'removed', events: [] })));
      await putDeliveries(delivery(2));
      expect(await at.store.listWebhooks()).toEqual([]);
      await add('a');
      expect(await at.store.listDeliveries({ webhookId: 'wh_a', limit: 9 })).toEqual([]);
    });

    test('progress updates the webhook, and can make earlier failures due at once', async () => {
      await add('a');
      await putDeliveries(delivery(1), delivery(2, { tries: 0 }), delivery(3, { state: 'failed', error: 'no' }));
      await at.other.recordProgress({ webhookId: 'wh_a', sequences: [3, 1] }, ({ webhook, deliveries }) => {
        expect(deliveries.map(({ sequence }) => sequence).sort()).toEqual([1, 3]);
        return {
          webhook: { failedTries: webhook.failedTries + 1, lastError: 'x' },
          put: [],
          retriesDueAt: 4_000,
          events: [],
        };
      });
      expect(await find('a')).toMatchObject({ failedTries: 1, lastError: 'x', cursor: expect.any(Number) });
      await at.store.recordProgress({ webhookId: 'wh_a', sequences: [] }, () => ({
        ...{ webhook: { lastError: undefined }, put: [], events: [] },
      }));
      expect(await find('a')).not.toHaveProperty('lastError');
      const due = await at.store.listDeliveries({ webhookId: 'wh_a', dueAt: 4_000, oldestFirst: true, limit: 9 });
      expect(due.map(({ sequence }) => sequence)).toEqual([1]);
    });

    test('trimming retains the newest deliveries and all waiting ones', async () => {
      await add('a');
      const states = ['delivered', 'delivered', 'delivered', 'failed', 'waiting', 'failed'] as const;
      await putDeliveries(
        ...states.map((state, index) => delivery(index + 1, { state, lastAt: index === 5 ? 1 : 10 })),
      );
      await at.store.trimDeliveries({ before: 5, keep: 2 });
      const left = await at.store.listDeliveries({ webhookId: 'wh_a', oldestFirst: true, limit: 9 });
      expect(left.map(({ sequence }) => sequence)).toEqual([2, 3, 4, 5]);
    });

    test('the outbox returns events in order with their changes, and how far it has read', async () => {
      const change = newChange({ state: 'refused' });
      await record(at.store, change);
      for (const action of ['x', 'key.pause', 'y'])
        await operate(at).appendAudit({ by: 'daemon', action, subject: 'z', detail: {} });
      const actions = ['rank.refused', 'key.pause'];
      const all = await at.other.eventsAfter({ after: 0, actions, limit: 9 });
      expect(all.events.map(({ event }) => event.action)).toEqual(actions);
      expect(all.events[0]).toMatchObject({ event: { detail: { rankeeId: 7 } }, change: { id: change.id } });
      expect(all.upTo).toBe(4);
      const first = await at.other.eventsAfter({ after: 0, actions, limit: 1 });
      expect(first.upTo).toBe(1);
      expect((await at.other.eventsAfter({ after: first.upTo, actions, limit: 9 })).events).toHaveLength(1);
      expect((await at.store.findEvents([99, 3, 1])).map(({ event }) => event.id)).toEqual([1, 3]);
    });
  });
}
