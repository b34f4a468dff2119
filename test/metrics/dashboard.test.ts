import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { settings } from '../../src/config/settings.ts';
import { databaseBackedUp } from '../../src/core/events.ts';
import { addressFrom, addWebhook } from '../../src/usecases/webhooks/edit-webhooks.ts';
import type { FakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudApp, openCloudApp } from '../support/open-cloud-app.ts';
import { type Sample, scrape } from '../support/scrape.ts';

interface Panel {
  id: number;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets: Array<{ expr: string; legendFormat: string }>;
}

interface Alerts {
  groups: Array<{ rules: Array<{ alert: string; expr: string; annotations: { summary: string } }> }>;
}

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const dashboard = JSON.parse(read('config/grafana-dashboard.json')) as { panels: Panel[] };
const alerts = (parse(read('config/prometheus-alerts.yaml')) as Alerts).groups.flatMap(({ rules }) => rules);
const page = read('docs/metrics.md');

/** Grafana replaces `$__rate_interval` with a duration. */
const queries = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ expr, legendFormat }) => ({
    title,
    legend: legendFormat,
    query: expr.replaceAll('$__rate_interval', '1m'),
  })),
);

const conditions = alerts.map(({ alert, expr, annotations }) => ({
  title: alert,
  legend: annotations.summary.replaceAll('$labels.', ''),
  query: expr,
}));

let system: OpenCloudApp;
let samples: Sample[];

beforeAll(async () => {
  const prepare = ({ credential }: FakeOpenCloud) => {
    credential.expirationTimeUtc = new Date(Date.now() + 86_400_000).toISOString();
  };
  system = await openCloudApp({ hasMetrics: true, prepare });
  const { app: at } = system;
  const target = addressFrom('https://192.0.2.1/never-called');
  await addWebhook(at, { name: 'bot', target, events: ['all'], by: 'cli:ann@host' });
  await at.store.appendAudit(databaseBackedUp({ file: 'copy.db', bytes: 1 }, { by: 'cli:ann@host', at: Date.now() }));
  await system.rank(1001);
  await system.rank(1001, { key: 'rk_live_nonsense' });
  const { app, metricsUrl } = system;
  await vi.waitUntil(() => app.requests.count === 0, { timeout: 20_000 });
  // While the daemon knows no webhook, it looks for one once a second.
  await vi.waitUntil(() => app.deliveries.list().length > 0, { timeout: 20_000 });
  samples = await scrape(metricsUrl);
});

afterAll(() => system[Symbol.asyncDispose]());

test.each([...queries, ...conditions])('$title: $query', ({ query, legend }) => {
  const { metrics, labels, errors } = partsOf(query);
  expect(errors).toEqual([]);
  expect(metrics.length).toBeGreaterThan(0);
  // Prometheus itself adds `up`.
  for (const metric of metrics.filter((name) => name !== 'up')) {
    const sample = samples.find(({ name }) => name === metric);
    expect(sample, `${metric} is served`).toBeDefined();
    const known = Object.keys(sample?.labels ?? {});
    const used = [...labels, ...[...legend.matchAll(/\{\{ ?(\w+) ?\}\}/g)].map(([, label = '']) => label)];
    expect(known, metric).toEqual(expect.arrayContaining(used));
  }
});

test('every metric of rankd is on a panel', () => {
  const shown = new Set(queries.flatMap(({ query }) => partsOf(query).metrics));
  const served = [...new Set(samples.map(({ name }) => name))].filter((name) => name.startsWith('rankd_'));
  expect(served.filter((name) => !shown.has(name) && !/_(sum|count)$/.test(name))).toEqual([]);
});

test('docs/metrics.md lists every metric that rankd serves, and every alert', () => {
  const served = new Set(samples.map(({ name }) => name.replace(/_(bucket|sum|count)$/, '')));
  const rows = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  const rankdMetrics = [...served].filter((name) => name.startsWith('rankd_'));
  expect(rows.toSorted()).toEqual([...rankdMetrics, ...alerts.map(({ alert }) => alert)].toSorted());
});

test('the Prometheus settings in docs/metrics.md name the default address of the metrics, and the alerts match the job', () => {
  const [, snippet = ''] = /```yaml\n(scrape_configs:.+?)```/s.exec(page) ?? [];
  const { scrape_configs, rule_files } = parse(snippet) as {
    scrape_configs: Array<{ job_name: string; static_configs: Array<{ targets: string[] }> }>;
    rule_files: string[];
  };
  const preset = (name: string) => settings.find(({ path }) => path === name)?.default;
  expect(scrape_configs).toEqual([
    { job_name: 'rankd', static_configs: [{ targets: [`${preset('metrics.host')}:${preset('metrics.port')}`] }] },
  ]);
  expect(alerts.find(({ expr }) => expr.includes('up{'))?.expr).toContain('job="rankd"');
  expect(rule_files.map((file) => file.replace('/opt/rankd/', ''))).toEqual(['config/prometheus-alerts.yaml']);
});

test('panels have distinct numbers and do not overlap', () => {
  const { panels } = dashboard;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
});

function partsOf(query: string): { metrics: string[]; labels: string[]; errors: string[] } {
  const found: Record<'metrics' | 'labels' | 'errors', string[]> = { metrics: [], labels: [], errors: [] };
  const text = ({ from, to }: { from: number; to: number }) => query.slice(from, to);
  parser.parse(query).iterate({
    enter(node) {
      if (node.type.isError) found.errors.push(`${text(node)} at ${node.from}`);
      if (node.name === 'Identifier' && node.node.parent?.name === 'VectorSelector') found.metrics.push(text(node));
      if (node.name === 'LabelName') found.labels.push(text(node));
    },
  });
  return found;
}
