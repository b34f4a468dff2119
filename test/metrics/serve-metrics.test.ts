import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { serveMetrics } from '../../src/metrics/serve-metrics.ts';

test('metrics that can not be gathered are told once, however often they are asked for, and again once they could be', async () => {
  const lines: string[] = [];
  const log = createLog({ level: 'info', readable: false, write: (line) => void lines.push(line) });
  const registry = new Registry();
  let isBroken = true;
  registry.metrics = async () => {
    if (isBroken) throw new Error('no disk');
    return '';
  };
  await using listener = await serveMetrics(registry, { host: '127.0.0.1', port: 0, log });
  const ask = async () => (await fetch(listener.url)).status;
  expect([await ask(), await ask(), await ask()]).toEqual([500, 500, 500]);
  expect(lines).toHaveLength(1);
  isBroken = false;
  expect(await ask()).toBe(200);
  isBroken = true;
  expect(await ask()).toBe(500);
  expect(lines).toHaveLength(2);
});
