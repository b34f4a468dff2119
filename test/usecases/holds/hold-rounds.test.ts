import { expect, test } from 'vitest';
import { pickForSweep, sweepEveryMs } from '../../../src/usecases/holds/hold-rounds.ts';

test.each([1, 20, 21, 40, 60, 100, 150, 300, 601])(
  'sweeps read each of %i absent members in turn, so that the return of any of them is noticed',
  (count) => {
    const missing = Array.from({ length: count }, (_, index) => index);
    const sweeps = Math.ceil(count / 20);
    const at = Date.UTC(2026, 10, 26);
    const read = Array.from({ length: sweeps }, (_, sweep) => pickForSweep(missing, at + sweep * (sweepEveryMs + 700)));
    expect(new Set(read.flat()).size).toBe(count);
    expect(Math.max(...read.map(({ length }) => length))).toBe(Math.min(20, count));
  },
);
