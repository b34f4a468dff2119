import { expect, test } from 'vitest';
import { RankdError } from '../../src/errors.ts';
import { RefusedCallers } from '../../src/usecases/refused-callers.ts';
import { openTestApp } from '../support/open-test-app.ts';

test('refusals are written to the audit in sums by code and reason; from the 51st reason of a code on, in one sum', async () => {
  await using app = await openTestApp();
  const refused = new RefusedCallers();
  const count = (internal: string) => refused.count(new RankdError('invalid_key', 'No.', { internal }));
  for (let reason = 1; reason <= 60; reason += 1) count(`reason ${reason}`);
  count('reason 1');
  refused.count(new RankdError('missing_authorization', 'No.'));
  await refused.flush(app.app);
  await refused.flush(app.app);
  const events = (await app.store.listAudit({ limit: 100 })).filter(({ action }) => action === 'caller.refused');
  const sums = new Map(events.map(({ subject, detail }) => [`${subject} ${detail['reason']}`, detail['count']]));
  expect(sums.size).toBe(52);
  expect(events).toHaveLength(52);
  expect(sums.get('invalid_key reason 1')).toBe(2);
  expect(sums.get('invalid_key reason 50')).toBe(1);
  expect(sums.get('invalid_key other reasons')).toBe(10);
  expect(sums.get('missing_authorization ')).toBe(1);
});
