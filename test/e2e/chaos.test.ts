import { expect, test } from 'vitest';
import { runChaos } from '../tools/chaos-run.ts';

test('daemons on one PostgreSQL that are killed, stopped and cut off lose nothing, duplicate nothing and reconcile everything', async () => {
  const lines: string[] = [];
  const seed = Date.now() % 2 ** 31;
  const print = (line: string) => void lines.push(line);
  const report = await runChaos({
    rounds: 1,
    sideBySide: 1,
    nodes: 2,
    faultCount: 2,
    maxFaultMs: 1_000,
    maxAnswerMs: 25,
    seed,
    print,
  });
  expect(report, [`seed ${seed}`, ...lines].join('\n')).toMatchObject({
    ...{ rounds: 1, kills: 2, lost: 0, doubled: 0, stray: 0, differing: 0, unreconciled: 0, violations: 0 },
  });
  expect(report.acknowledged).toBeGreaterThan(0);
});
