import { createMeters } from '../../src/metrics/meters.ts';
import { watchApp } from '../../src/metrics/watch-app.ts';
import type { LiveContext } from '../../src/usecases/daemon-context.ts';
import { table } from './reference-tables.ts';

interface Described {
  name: string;
  help: string;
  type: string;
  labelNames?: string[];
}

export function metricsTable(): string[] {
  const meters = createMeters();
  watchApp({} as LiveContext, meters); // only a scrape reads the context
  const metrics = meters.registry.getMetricsAsArray() as unknown as Described[];
  const rows = metrics.filter(({ name }) => name.startsWith('rankd_')).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return table(
    ['metric', 'kind', 'labels', 'meaning'],
    rows.map(({ name, type, labelNames = [], help }) => [
      `\`${name}\``,
      type,
      labelNames.map((label) => `\`${label}\``).join(', '),
      help,
    ]),
  );
}
