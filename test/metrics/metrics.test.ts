import http from 'node:http';
import { expect, test } from 'vitest';
import { RankdError } from '../../src/base/errors.ts';
import { version } from '../../src/base/version.ts';
import type { Config } from '../../src/config/config.ts';
import { operate } from '../contracts/store/samples.ts';
import { rankBody } from '../support/answers.ts';
import { openCloudApp } from '../support/open-cloud-app.ts';
import { openTestApp, place, send, type TestApp, type TestAppOptions } from '../support/open-test-app.ts';
import { holdWrites, platformWith } from '../support/platform-with.ts';
import { type Sample, sampleOf, scrape } from '../support/scrape.ts';

const metrics: Config['metrics'] = { enabled: true, host: '127.0.0.1', port: 0 };

const openWithMetrics = ({ config, ...options }: TestAppOptions = {}): Promise<TestApp> =>
  openTestApp({ ...options, config: { ...config, metrics } });

test('requests are counted and timed by route, status and code', async () => {
  await using app = await openWithMetrics();
  const key = await app.createKey();
  await app.rank(key);
  await app.rank(key, { rankeeId: 4242 });
  await app.rank(key, { rankeeId: 4243 });
  await send(`${app.url}/healthz`, {});
  const name = 'rankd_http_requests_total';
  for (const labels of [
    { route: '/v1/ranker', status: '503', code: 'store_unavailable' },
    { route: '/v1/apikey', status: '401', code: 'invalid_key' },
    { route: '/readyz', status: '503', code: 'platform_unavailable' },
  ])
    expect(sampleOf(await scrape(app.metricsUrl), name, labels)).toBe(0);
  await expect.poll(async () => sampleOf(await scrape(app.metricsUrl), name, { route: '/healthz', code: '' })).toBe(1);
  const samples = await scrape(app.metricsUrl);
  expect(sampleOf(samples, name, { route: '/v1/ranker', status: '200', code: '' })).toBe(1);
  expect(sampleOf(samples, name, { route: '/v1/ranker', status: '404', code: 'member_not_found' })).toBe(2);
  expect(sampleOf(samples, 'rankd_http_request_duration_seconds_count', { route: '/v1/ranker' })).toBe(3);
});

test('changes are counted by outcome, and changes with test keys separately', async () => {
  const fail = () => Promise.reject(new RankdError('platform_unavailable', 'Down.'));
  await using app = await openWithMetrics({ platform: (group) => platformWith(group, { unassignRole: fail }) });
  const key = await app.createKey();
  await app.rank(await app.createKey({ name: 'try', mode: 'test' }));
  await app.rank(key, { rankeeId: 4242 });
  await app.rank(key, { rankeeId: 1005, newRankId: 50 });
  await app.rank(key);
  await app.rank(key, { rankeeId: 1001, newRankId: 10 });
  await app.rank(key, { rankeeId: 1001, newRankId: 10 }); // the member already has this rank, so nothing is written
  const samples = await scrape(app.metricsUrl);
  const changes = (labels: Record<string, string>) => sampleOf(samples, 'rankd_changes_total', labels);
  expect(changes({ outcome: 'applied', dry_run: 'true' })).toBe(1);
  expect(changes({ outcome: 'refused', code: 'member_not_found', dry_run: 'false' })).toBe(1);
  const ended = samples.filter(({ name }) => name === 'rankd_changes_total');
  expect(ended.reduce((sum, { value }) => sum + value, 0)).toBe(6);
});

test('refused keys are counted by reason', async () => {
  await using app = await openWithMetrics();
  const key = await app.createKey({ name: 'gone' });
  await operate(app.app).revokeKey((await app.store.findKey('gone'))?.id ?? '', 'cli:ann@host');
  await app.rank(key);
  await app.rank('rk_live_nonsense');
  await app.rank(await app.createKey({ name: 'verify', scopes: ['verify'] }));
  await app.post('/v1/apikey', { body: { placeid: place } });
  const failures = (samples: Sample[], labels: Record<string, string>) =>
    sampleOf(samples, 'rankd_key_failures_total', labels);
  await expect.poll(async () => failures(await scrape(app.metricsUrl), { code: 'missing_authorization' })).toBe(1);
  const samples = await scrape(app.metricsUrl);
  expect(failures(samples, { code: 'invalid_key', reason: 'revoked' })).toBe(1);
  expect(failures(samples, { code: 'invalid_key', reason: 'malformed' })).toBe(1);
  expect(failures(samples, { code: 'key_not_allowed', reason: 'missing_scope' })).toBe(1);
});

test('text from callers creates no new series', async () => {
  await using app = await openWithMetrics({
    config: { limits: { rankPerMinute: 0, rankBurst: 0, verifyPerMinute: 0 } },
  });
  const key = await app.createKey();
  const visit = async (round: number) => {
    await send(`${app.url}/nowhere/${round}`, {});
    await send(`${app.url}/%zz${round}`, {});
    await send(`${app.url}/v1/apikey?${round}`, { method: round % 2 === 0 ? 'PUT' : 'DELETE' });
    await app.verify(`rk_live_${round}`, round);
    await app.post(`/v1/ranker?placeid=${1000 + round}`, { key, body: rankBody() });
    await app.rank(key, { rankeeId: 5000 + round, newRankId: 20, rankeeName: `R${round}` });
    const other = await app.createKey({ name: `key${round}`, places: [] });
    await app.rank(other);
  };
  const series = async () =>
    (await scrape(app.metricsUrl))
      .filter(({ name }) => name.startsWith('rankd_'))
      .map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`)
      .sort();
  await visit(0);
  await visit(1);
  const before = await series();
  for (let round = 2; round < 8; round += 1) await visit(round);
  expect(await series()).toEqual(before);
  expect(before.filter((one) => one.startsWith('rankd_http_requests_total')).length).toBeGreaterThan(4);
});

test('requests in flight are counted', async () => {
  const { platform, begun, release } = holdWrites();
  await using app = await openWithMetrics({ platform });
  const running = app.rank(await app.createKey());
  await begun;
  expect(sampleOf(await scrape(app.metricsUrl), 'rankd_http_requests_in_flight')).toBe(1);
  release();
  await running;
  await expect.poll(async () => sampleOf(await scrape(app.metricsUrl), 'rankd_http_requests_in_flight')).toBe(0);
});

test('calls to Roblox are counted and timed; the remaining budget and the state of the key are reported', async () => {
  await using system = await openCloudApp({ hasMetrics: true });
  expect((await system.rank(1001)).status).toBe(200);
  const samples = await scrape(system.metricsUrl);
  const at = (name: string, labels: Record<string, string> = {}) => sampleOf(samples, `rankd_${name}`, labels);
  expect(at('platform_calls_total', { operation: 'assign', outcome: 'ok' })).toBe(1);
  expect(at('platform_call_duration_seconds_count', { operation: 'assign' })).toBe(1);
  expect(at('platform_budget_limit', { operation: 'assign' })).toBe(300);
  expect(at('platform_budget_left', { operation: 'assign' })).toBe(299);
  expect(at('platform_queue_depth', { operation: 'assign' })).toBe(0);
  expect(at('platform_queue_admitted_total', { operation: 'assign' })).toBe(1);
  expect(at('credential_state', { state: 'valid' })).toBe(1);
  expect(at('credential_state', { state: 'expired' })).toBe(0);
  expect(at('credential_accepted')).toBe(1);
});

test('a waiting call is counted in the queue', async () => {
  await using system = await openCloudApp({ hasMetrics: true });
  const labels = { operation: 'memberships' } as const;
  const at = async (name: string) => sampleOf(await scrape(system.metricsUrl), `rankd_platform_${name}`, labels);
  system.fake.faults.add({ ...labels, kind: 'status 429', headers: { 'retry-after': '3' }, times: 1 });
  const asked = system.call();
  const call = system.app.platform.getMember(1001, { ...asked, deadlineAt: asked.deadlineAt + 8_000 });
  await expect.poll(() => at('queue_depth'), { timeout: 2_900 }).toBe(1);
  expect(await at('budget_left')).toBe(0);
  system.clock.skip(3_000);
  await call;
  await expect.poll(() => at('queue_depth'), { timeout: 5_000 }).toBe(0);
  expect(await at('queue_wait_seconds_total')).toBeGreaterThan(0.5);
});

test('the event loop, the memory and the build are also reported', async () => {
  await using app = await openWithMetrics();
  const samples = await scrape(app.metricsUrl);
  expect(sampleOf(samples, 'rankd_build_info', { version })).toBe(1);
  expect(sampleOf(samples, 'process_resident_memory_bytes')).toBeGreaterThan(0);
  expect(samples.map(({ name }) => name)).toContain('nodejs_eventloop_lag_p99_seconds');
});

test('the listener serves only metrics, and the API serves none', async () => {
  await using app = await openWithMetrics();
  const { origin, port } = new URL(app.metricsUrl ?? '');
  expect((await fetch(`${origin}/`)).status).toBe(404);
  expect((await fetch(`${origin}/v1/apikey`, { method: 'POST' })).status).toBe(404);
  const post = await fetch(`${origin}/metrics`, { method: 'POST' });
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  const head = await fetch(`${origin}/metrics`, { method: 'HEAD' });
  expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
    '',
  ]);
  expect((await send(`${app.url}/metrics`, {})).status).toBe(404);
  const keptAlive = http.get({ port, agent: new http.Agent({ keepAlive: true }), path: '/metrics' }, (answer) =>
    answer.resume(),
  );
  await new Promise((resolve) => keptAlive.once('close', resolve));
  await app.stop();
  await expect(fetch(`${origin}/metrics`)).rejects.toThrow();
});
