import { PerformanceObserver } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';

const lookEveryMs = 1_000;
/** The share of time that may go into collecting, of any kind, before a larger heap is worth its memory. */
const maxCollecting = 0.05;

/**
 * Suits V8's heap for new objects to a daemon. It is collected by one thread: to wake four for a heap this small costs more than they
 * save, above all where there are fewer cores. And it grows only while that makes requests faster: requests that arrive
 * together live together, so V8 takes them for long-lived and would let it grow to its limit, 64 MiB and more.
 *
 * V8 reads both flags each time they matter (`NumberOfScavengeTasks`, `SemiSpaceNewSpace::Grow`); the limit itself,
 * `--max-semi-space-size`, it reads from the command line alone.
 */
export function tuneYoungHeap(): void {
  setTimeout(tune, lookEveryMs).unref(); // nothing of it is worth waiting for at the start
}

function tune(): void {
  setFlagsFromString('--no-parallel-scavenge');
  let collectingMs = 0;
  new PerformanceObserver((collections) => {
    for (const { duration } of collections.getEntries()) collectingMs += duration;
  }).observe({ entryTypes: ['gc'] });
  let factor = 2; // V8's own
  setInterval(() => {
    const wanted = collectingMs > maxCollecting * lookEveryMs ? 2 : 1;
    if (wanted !== factor) setFlagsFromString(`--semi-space-growth-factor=${wanted}`);
    factor = wanted;
    collectingMs = 0;
  }, lookEveryMs).unref();
}
