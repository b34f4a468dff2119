import { expect, test } from 'vitest';
import { RankdError } from '../../../src/base/errors.ts';
import type { AuditEvent } from '../../../src/core/model.ts';
import { openTestApp, type TestApp } from '../../support/open-test-app.ts';

test('refusals are written to the audit in sums by code and reason', async () => {
  await using app = await openTestApp();
  const { refused } = app.app;
  for (const keyId of ['key_1', 'key_2', 'key_1']) {
    refused.count(new RankdError('invalid_key', 'No.', { details: { reason: 'revoked', keyId } }));
  }
  refused.count(new RankdError('missing_authorization', 'No.', { details: { reason: 'no_key' } }));
  await refused.flush(app.app);
  await refused.flush(app.app);
  const sums = (await refusalsIn(app)).map(({ subject, detail }) => [subject, detail]);
  expect(sums).toHaveLength(3);
  expect(sums).toEqual(
    expect.arrayContaining([
      ['invalid_key', { reason: 'revoked', keyId: 'key_1', count: 2 }],
      ['invalid_key', { reason: 'revoked', keyId: 'key_2', count: 1 }],
      ['missing_authorization', { reason: 'no_key', count: 1 }],
    ]),
  );
});

test('one who keeps on is counted anew after each flush, and apart from the refusals to ask so often', async () => {
  await using app = await openTestApp();
  const { refused } = app.app;
  const details = { reason: 'unknown' } as const;
  const wrongKey = new RankdError('invalid_key', 'No.', { details });
  const tooOften = new RankdError('too_many_requests', 'Slow down.', { details });
  for (const refusal of [wrongKey, wrongKey, tooOften, wrongKey]) refused.count(refusal);
  await refused.flush(app.app);
  refused.count(wrongKey);
  await refused.flush(app.app);
  expect((await refusalsIn(app)).map(({ subject, detail }) => [subject, detail['count']]).sort()).toEqual([
    ['invalid_key', 1],
    ['invalid_key', 3],
    ['too_many_requests', 1],
  ]);
});

test('whoever makes up places with a key that is accepted can not fill the audit: the first ten are told apart, the rest are one sum', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  for (let placeid = 1001; placeid <= 1030; placeid += 1) await app.verify(key, placeid);
  await app.app.refused.flush(app.app);
  const told = (await refusalsIn(app)).map(({ detail }) => detail);
  expect(told).toHaveLength(11);
  const { id } = (await app.store.findKey('main')) ?? expect.fail('there is no key');
  expect(told).toContainEqual({ reason: 'not_listed', keyId: id, placeId: 1001, count: 1 });
  expect(told).toContainEqual({ reason: 'other', count: 20 });
});

async function refusalsIn({ store }: TestApp): Promise<AuditEvent[]> {
  return (await store.listAudit({ limit: 100 })).filter(({ action }) => action === 'caller.refused');
}
