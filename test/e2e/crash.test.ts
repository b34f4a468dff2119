import { expect, test } from 'vitest';
import { runCrashes } from '../tools/crash-run.ts';

test('a daemon killed under load, even during recovery, loses nothing, duplicates nothing and reconciles everything', async () => {
  const lines: string[] = [];
  const seed = Date.now() % 2 ** 31;
  const report = await runCrashes({
    rounds: 1,
    killsPerRound: 3,
    sideBySide: 1,
    seed,
    print: (line) => void lines.push(line),
  });
  expect(report, [`seed ${seed}`, ...lines].join('\n')).toMatchObject({
    rounds: 1,
    kills: 3,
    lost: 0,
    doubled: 0,
    stray: 0,
    differing: 0,
    unreconciled: 0,
    violations: 0,
  });
  expect(report.acknowledged).toBeGreaterThan(0);
});
