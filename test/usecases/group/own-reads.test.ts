import { expect, test } from 'vitest';
import { deadlineIn } from '../../../src/base/clock.ts';
import { onOpenCloud } from '../../support/open-cloud-app.ts';

test(
  'a daemon whose readiness is polled makes five reads of its own a minute, and each counts against the budget',
  onOpenCloud(async ({ app, fake, clock }) => {
    const counted = () => app.platform.pace().reduce((sum, { admitted }) => sum + admitted, 0);
    const read = async () => {
      using deadline = deadlineIn(clock, 10_000);
      await app.group.requireReadable({ lane: 'readiness', deadlineAt: deadline.at, signal: deadline.signal });
    };
    await read();
    const before = { counted: counted(), entries: fake.journal.entries.length };
    const minutes = 5;
    for (let seconds = 0; seconds < minutes * 60; seconds += 5) {
      clock.skip(5_000);
      await read();
    }
    const reads = fake.journal.entries.slice(before.entries).map(({ operation }) => operation);
    const minutely = ['roles', 'roles', 'introspect', 'memberships', 'group'];
    expect(reads.toSorted()).toEqual(Array(minutes).fill(minutely).flat().toSorted());
    expect(counted() - before.counted).toBe(reads.length);
  }),
);
