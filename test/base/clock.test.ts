import { once } from 'node:events';
import { expect, test } from 'vitest';
import { startNode } from '../support/node-process.ts';

test('a deadline in the past causes no Node.js warning', async () => {
  const child = startNode(`
    import { systemClock } from '${new URL('../../src/base/clock.ts', import.meta.url)}';
    process.on('warning', ({ name }) => process.stdout.write(name));
    await systemClock.sleep(-5);
    setImmediate(() => process.stdout.write('.'));`);
  let output = '';
  child.stdout?.on('data', (text) => {
    output += text;
  });
  await once(child, 'close');
  expect(output).toBe('.');
});
