import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { deadlineIn } from '../../src/base/clock.ts';
import { databaseBackedUp } from '../../src/core/events.ts';
import { changeRank } from '../../src/usecases/change/change-rank.ts';
import type { DaemonContext } from '../../src/usecases/daemon-context.ts';
import { pauseKey, resumeKey } from '../../src/usecases/keys/keys.ts';
import { type ReadyCheck, readyChecks } from '../../src/usecases/upkeep/readiness.ts';
import { addressFrom, addWebhook, disableWebhook } from '../../src/usecases/webhooks/edit-webhooks.ts';
import { ManualClock } from '../support/manual-clock.ts';
import {
  type OpenCloudApp,
  type OpenCloudAppOptions,
  openCloudAppOn,
  sampleRoles,
  sampleUsers,
} from '../support/open-cloud-app.ts';
import { firing, type Scrape } from '../support/promql.ts';
import { type Sample, scrape } from '../support/scrape.ts';
import { send } from '../support/send.ts';
import { isOnPostgres } from '../support/store-of-app.ts';

vi.setConfig({ maxConcurrency: 4 });

interface Rule {
  alert: string;
  expr: string;
}

const file = readFileSync(new URL('../../config/prometheus-alerts.yaml', import.meta.url), 'utf8');
const rules = (parse(file) as { groups: Array<{ rules: Rule[] }> }).groups.flatMap((group) => group.rules);

type System = OpenCloudApp<ManualClock>;

const { recruit, officer, captain } = sampleRoles;
const { actor } = sampleUsers;
const always = Number.POSITIVE_INFINITY;
const minute = 60_000;
const by = 'cli:ann@host';
const ann = 20_001;
const target = addressFrom('https://192.0.2.1/never-answers');

/** The event that makes each alert fire, and the labels that the alert then has. */
const events: Record<string, { trigger: (system: System) => Promise<unknown>; labels?: Record<string, string> }> = {
  RankdDown: { trigger: async (system) => system[Symbol.asyncDispose](), labels: { job: 'rankd' } },
  RankdCannotChangeRanks: {
    async trigger({ fake, clock, rank }) {
      fake.credential.enabled = false;
      await clock.passUntil(rank(ann));
    },
  },
  RankdNotReady: {
    async trigger({ fake, clock }) {
      fake.faults.add({ operation: 'roles', kind: 'status 503', times: always });
      await clock.advance(minute); // twice as long as roles are cached
    },
    labels: { check: 'platform' },
  },
  RankdOutcomeUnknown: {
    async trigger({ fake, clock, rank }) {
      fake.faults.add({ operation: 'unassign', kind: 'reset', when: 'after', times: always });
      fake.faults.add({ operation: 'memberships', kind: 'status 503', skip: 1, times: always });
      expect((await clock.passUntil(rank(ann))).status).toBe(504);
    },
  },
  RankdSuspensionStuck: {
    async trigger({ app, fake, clock }) {
      await clock.passUntil(suspend(app, { forMs: 10 * minute }));
      fake.group.setMember(actor, [officer]);
      await clock.advance(12 * minute);
    },
  },
  RankdGameKeyPaused: { trigger: ({ app }) => pauseKey(app, { key: 'main', by }) },
  RankdRobloxKeyExpires: {
    async trigger({ app, fake, clock, call }) {
      fake.credential.expirationTimeUtc = new Date(clock.now() + 86_400_000).toISOString();
      await clock.passUntil(app.platform.checkCredential(call()));
    },
  },
  RankdBackupOld: {
    async trigger({ app, clock }) {
      await app.store.appendAudit(databaseBackedUp({ file: 'copy.db', bytes: 1 }, { by, at: clock.now() }));
      await clock.skip(9 * 24 * 60 * minute);
    },
  },
  RankdWebhookBacklog: {
    async trigger({ app, clock }) {
      await pauseKey(app, { key: 'main', by });
      await resumeKey(app, { key: 'main', by });
      await clock.advance(6 * minute);
    },
    labels: { webhook: 'bot' },
  },
  RankdWebhookDisabled: {
    trigger: ({ app }) => disableWebhook(app, { name: 'bot', by }),
    labels: { webhook: 'bot' },
  },
};

async function suspend(app: DaemonContext, { forMs }: { forMs: number }): Promise<unknown> {
  using deadline = deadlineIn(app.clock, 30_000);
  const who = { rankeeId: ann, rankeeName: 'Ann', rankerId: 0, rankerName: 'operator' };
  const request = { ...who, newRankId: 0, command: 'test', reason: 'spam' };
  const hold = { kind: 'suspension' as const, endsAt: app.clock.now() + forMs };
  return changeRank(app, { caller: { by, dryRun: false }, request, hold }, deadline);
}

async function opened(rest: OpenCloudAppOptions['policy'] = {}): Promise<System> {
  const clock = new ManualClock();
  const policy = { suspension: { role: recruit, maxMs: 86_400_000 }, ...rest };
  const system = await clock.passUntil(openCloudAppOn(clock, { hasMetrics: true, deadlineMs: 5_000, policy }));
  system.fake.group.setMember(ann, [officer, captain]);
  await addWebhook(system.app, { name: 'bot', target, events: ['all'], by });
  return system;
}

/** Scrapes the metrics, and adds the sample `up` as Prometheus does. */
async function scraped({ clock, metricsUrl }: System): Promise<Scrape> {
  await clock.advance(1_000); // until the cached rendering is stale
  const at = clock.now();
  const up = (value: number): Sample => ({ name: 'up', labels: { job: 'rankd' }, value });
  const samples = await clock.passUntil(scrape(metricsUrl)).then(
    (found) => [...found, up(1)],
    () => [up(0)],
  );
  return { at, samples };
}

function ready({ samples }: Scrape): Record<string, number> {
  return Object.fromEntries(
    samples.flatMap(({ name, labels, value }) => (name === 'rankd_ready' ? [[labels['check'], value]] : [])),
  );
}

describe.concurrent('an alert fires after its event, and not before:', () => {
  test.for(rules)('$alert', async ({ alert, expr }) => {
    const { trigger, labels = {} } = events[alert] ?? expect.fail(`no event is known for ${alert}`);
    const system = await opened();
    try {
      expect(firing(expr, await scraped(system))).toEqual([]);
      await trigger(system);
      expect(firing(expr, await scraped(system))).toMatchObject([labels]);
    } finally {
      // Disposal may wait for a read in flight until its deadline.
      await system.clock.passUntil(Promise.resolve(system[Symbol.asyncDispose]()));
    }
  });
});

const failures = {
  running: ({ app }) => {
    app.requests.isDraining = true;
  },
  credential: async (system) => events['RankdCannotChangeRanks']?.trigger(system),
  trust: ({ app }) => {
    for (const userId of [1, 2, 3]) app.trust.noteSideEffects(userId, { vanished: [officer], appeared: [], kept: [] });
  },
  store: ({ dataDir }) => renameSync(join(dataDir, 'rankd.db'), join(dataDir, 'moved.db')),
  platform: async (system) => events['RankdNotReady']?.trigger(system),
  configuration: async ({ fake, clock }) => {
    fake.group.roles = fake.group.roles.filter(({ id }) => id !== captain);
    await clock.advance(minute);
  },
} satisfies Record<ReadyCheck, (system: System) => unknown>;

test.for(readyChecks)('rankd_ready is 0 only for %s while that check prevents rank changes', async (check) => {
  if (check === 'store' && isOnPostgres) return;
  await using stack = new AsyncDisposableStack();
  const system = await opened({ maxRank: 'Captain' });
  // Disposal may wait for a read in flight until its deadline.
  stack.defer(() => system.clock.passUntil(Promise.resolve(system[Symbol.asyncDispose]())));
  const all = Object.fromEntries(readyChecks.map((name) => [name, 1]));
  expect(ready(await scraped(system))).toEqual(all);
  await failures[check](system);
  const after = await scraped(system);
  expect(ready(after)).toEqual({ ...all, [check]: 0 });
  const { expr } = rules.find(({ alert }) => alert === 'RankdNotReady') ?? expect.fail('there is no such alert');
  const hasAlert = ['store', 'platform', 'configuration'].includes(check);
  expect(firing(expr, after)).toEqual(hasAlert ? [{ check }] : []);
  if (check === 'store') renameSync(join(system.dataDir, 'moved.db'), join(system.dataDir, 'rankd.db'));
});

test('a scrape that times out on Roblox does not make rankd unready', async () => {
  await using system = await opened();
  const { fake, clock, url } = system;
  const readyz = async () => (await clock.passUntil(send(`${url}/readyz`, {}))).status;
  expect(await readyz()).toBe(200);
  await clock.advance(minute / 2); // roles are cached for this long
  fake.faults.add({ operation: 'roles', kind: 'hang', times: always });
  expect(ready(await scraped(system))).toMatchObject({ platform: 0 });
  fake.faults.clear();
  expect(await readyz()).toBe(200);
});

test.runIf(!isOnPostgres)('metrics from the store are absent while it accepts no writes', async () => {
  await using system = await opened();
  renameSync(join(system.dataDir, 'rankd.db'), join(system.dataDir, 'moved.db'));
  const gone = await scraped(system);
  const names = new Set(gone.samples.map(({ name }) => name));
  for (const name of ['rankd_keys_paused', 'rankd_suspensions_stuck', 'rankd_webhook_backlog'])
    expect(names).not.toContain(name);
  renameSync(join(system.dataDir, 'moved.db'), join(system.dataDir, 'rankd.db'));
});

test('alerts do not add up metrics that daemons read from a shared database', () => {
  const shared =
    /rankd_(last_backup_timestamp_seconds|keys_paused|open_changes|suspensions_stuck|webhook_(enabled|backlog|oldest_seconds))/;
  for (const { alert, expr } of rules.filter(({ expr }) => shared.test(expr))) expect(expr, alert).toMatch(/^max\b/);
});
