let waiting: Array<() => void> = [];

/**
 * Runs `work` once everything that arrives in this turn of the event loop has been received, together with what else waits for that: without
 * a pause, in order of arrival. It must not throw: the others would not be run.
 */
export function atEndOfTurn(work: () => void): void {
  if (waiting.push(work) === 1) setImmediate(runAll);
}

function runAll(): void {
  const works = waiting;
  waiting = [];
  for (const work of works) work();
}
