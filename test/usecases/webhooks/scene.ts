import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import type { RankChange } from '../../../src/core/model.ts';
import { readAddress, type Webhook } from '../../../src/core/webhooks/webhook.ts';
import { deliverEvents } from '../../../src/daemon/workers.ts';
import type { TargetAnswer, WebhookRequest, WebhookSender } from '../../../src/ports/index.ts';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import type { LiveContext } from '../../../src/usecases/daemon-context.ts';
import { DeliveryCounts } from '../../../src/usecases/webhooks/deliver.ts';
import { addWebhook, type WebhookDefinition } from '../../../src/usecases/webhooks/edit-webhooks.ts';
import { requireWebhook } from '../../../src/usecases/webhooks/send.ts';
import { newChange, operate, record } from '../../contracts/store/samples.ts';
import { discordAddress } from '../../support/fake-discord.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { tempDir } from '../../support/temp-dir.ts';

export const hour = 3_600_000;
export const day = 24 * hour;

/** Runs a daemon's delivery worker on a manual clock, with a real store and fake targets. */
export async function openDelivery(senderFor: (clock: ManualClock) => WebhookSender) {
  const clock = new ManualClock();
  const store = await openSqliteStore({ dataDir: tempDir(), clock });
  const sender = senderFor(clock);
  const webhooks = { timeoutMs: 15_000, allowPrivate: [], callerUrl: 'match', declared: new Map() };
  const app = {
    store,
    clock,
    sender,
    webhooks,
    log: pino({ level: 'silent' }),
    group: { title: 'group 7 on x' },
    deliveries: new DeliveryCounts(),
  };
  const live = { current: app } as unknown as LiveContext;
  let stop = new AbortController();
  let running = deliverEvents(live, stop.signal);
  const end = async () => {
    stop.abort();
    await running;
  };
  onTestFinished(async () => {
    await end();
    await store.close();
  });
  return {
    ...{ clock, store, app, end },
    /** Advances the clock in one-second steps for the first eight minutes, then in ten-minute steps. */
    async pass(ms: number) {
      for (let passed = 0; passed < ms; ) {
        const step = passed < 8 * 60_000 ? 1_000 : 10 * 60_000;
        await clock.skip(step);
        passed += step;
      }
    },
    start() {
      stop = new AbortController();
      running = deliverEvents(live, stop.signal);
    },
    add: async (name: string, address: string, rest: Partial<WebhookDefinition> = {}): Promise<Webhook> => {
      const target = readAddress(address);
      if ('refusal' in target) throw target.refusal;
      const events = target.kind === 'discord' ? ['all'] : ['refusals'];
      return (await addWebhook(app, { name, target, events, by: 'cli:ann@host', ...rest })).webhook;
    },
    find: (name: string) => requireWebhook(app, name),
    refuse: (rankeeId: number, rest: Partial<RankChange> = {}) =>
      record(
        store,
        newChange({
          rankeeId,
          state: 'refused',
          code: 'rank_not_allowed',
          requestedAt: clock.now(),
          finishedAt: clock.now(),
          ...rest,
        }),
      ),
    demote: (rankeeId: number, rest: Partial<RankChange> = {}) => {
      const roles = [
        { id: 200, name: 'Trainee', rank: 10 },
        { id: 300, name: 'Officer', rank: 20 },
      ];
      const moved = { rolesBefore: [100, 300], rolesAfter: [100, 200], oldRoleId: 300, roleId: 200, roles };
      return record(
        store,
        newChange({ rankeeId, state: 'applied', ...moved, requestedAt: clock.now(), finishedAt: clock.now(), ...rest }),
      );
    },
    append: (action: string, detail: Record<string, unknown> = {}) =>
      operate({ store, clock }).appendAudit({ by: 'daemon', action, subject: 'key_main', detail }),
  };
}

export class FakeTargets implements WebhookSender {
  readonly sent: Array<{
    host: string;
    at: number;
    id: string;
    event: { type: string; data: { sequence: number; change?: { rankeeId: number } } };
    request: WebhookRequest;
  }> = [];
  answer: (host: string, rankeeId: number | undefined) => Partial<TargetAnswer & { status: number }> | 'hang' = () => ({
    status: 204,
  });
  readonly #clock: ManualClock;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  async send(request: WebhookRequest, signal?: AbortSignal): Promise<TargetAnswer> {
    const { host } = new URL(request.address);
    const event = JSON.parse(request.body ?? '{}');
    this.sent.push({ host, at: this.#clock.now(), id: request.headers?.['webhook-id'] ?? '', event, request });
    const answer = this.answer(host, event.data?.change?.rankeeId);
    if (answer !== 'hang')
      return { isAnswered: true, status: 0, header: () => undefined, text: '', ...answer } as TargetAnswer;
    await this.#clock.sleep(request.timeoutMs, signal);
    return { isAnswered: false, error: 'it does not respond in time (15 s)' };
  }

  judgeAddress = async () => ({});

  /** Returns the members (ids) whose events a host received, in order. */
  members(host: string): Array<number | undefined> {
    return this.sent.filter((one) => one.host === host).map(({ event }) => event.data.change?.rankeeId);
  }
}

export { discordAddress };
