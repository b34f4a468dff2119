import { expect, test } from 'vitest';
import { RankdError } from '../../../src/base/errors.ts';
import type { AuditEvent } from '../../../src/core/model.ts';
import { openTestApp, type TestApp } from '../../support/open-test-app.ts';

const from = '203.0.113.7';

test('the audit records refusals as totals by code and reason', async () => {
  await using app = await openTestApp();
  const { refused } = app.app;
  for (const keyId of ['key_1', 'key_2', 'key_1']) {
    refused.count(new RankdError('invalid_key', 'No.', { details: { reason: 'revoked', keyId } }), from);
  }
  refused.count(new RankdError('missing_authorization', 'No.', { details: { reason: 'no_key' } }), from);
  await refused.flush(app.app);
  await refused.flush(app.app);
  const sums = (await refusalsIn(app)).map(({ subject, detail }) => [subject, detail]);
  expect(sums).toHaveLength(3);
  expect(sums).toEqual(
    expect.arrayContaining([
      ['invalid_key', { reason: 'revoked', keyId: 'key_1', from, count: 2 }],
      ['invalid_key', { reason: 'revoked', keyId: 'key_2', from, count: 1 }],
      ['missing_authorization', { reason: 'no_key', from, count: 1 }],
    ]),
  );
});

test('a caller that keeps retrying is counted again after each flush, and separately under too_many_requests', async () => {
  await using app = await openTestApp();
  const { refused } = app.app;
  const details = { reason: 'unknown' } as const;
  const wrongKey = new RankdError('invalid_key', 'No.', { details });
  const tooOften = new RankdError('too_many_requests', 'Slow down.', { details });
  for (const refusal of [wrongKey, wrongKey, tooOften, wrongKey]) refused.count(refusal, from);
  await refused.flush(app.app);
  refused.count(wrongKey, from);
  await refused.flush(app.app);
  expect((await refusalsIn(app)).map(({ subject, detail }) => [subject, detail['count']]).sort()).toEqual([
    ['invalid_key', 1],
    ['invalid_key', 3],
    ['too_many_requests', 1],
  ]);
});

test('a caller that invents places for an accepted key cannot fill the audit: ten are listed, and the rest form one total', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  for (let placeid = 1001; placeid <= 1030; placeid += 1) await app.verify(key, placeid);
  await app.app.refused.flush(app.app);
  const refusals = (await refusalsIn(app)).map(({ detail }) => detail);
  expect(refusals).toHaveLength(11);
  const { id } = (await app.store.findKey('main')) ?? expect.fail('there is no key');
  expect(refusals).toContainEqual({ reason: 'not_listed', keyId: id, placeId: 1001, from: '127.0.0.1', count: 1 });
  expect(refusals).toContainEqual({ reason: 'other', from: '127.0.0.1', count: 20 });
});

test('callers are listed by address, and those beyond the limit form one total', async () => {
  await using app = await openTestApp();
  const { refused } = app.app;
  const wrongKey = new RankdError('invalid_key', 'No.', { details: { reason: 'unknown' } });
  for (let n = 1; n <= 40; n += 1) refused.count(wrongKey, `203.0.113.${n % 2 === 0 ? 2 : n}`);
  await refused.flush(app.app);
  const refusals = (await refusalsIn(app)).map(({ detail }) => detail);
  expect(refusals).toHaveLength(20 + 1);
  expect(refusals).toContainEqual({ reason: 'unknown', from: '203.0.113.2', count: 20 });
  expect(refusals).toContainEqual({ reason: 'other', from: '203.0.113.19', count: 1 });
  expect(refusals).toContainEqual({ reason: 'other', count: 1 });
});

async function refusalsIn({ store }: TestApp): Promise<AuditEvent[]> {
  return (await store.listAudit({ limit: 100 })).filter(({ action }) => action === 'caller.refused');
}
