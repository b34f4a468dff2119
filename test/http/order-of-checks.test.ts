import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeOf, rankBody } from '../support/answers.ts';
import { openTestApp, place, type Sent, type TestApp } from '../support/open-test-app.ts';

let app: TestApp;
let keys: { good: string; verifyOnly: string; rankOnly: string };

beforeAll(async () => {
  app = await openTestApp();
  keys = {
    good: await app.createKey(),
    verifyOnly: await app.createKey({ name: 'verify', scopes: ['verify'] }),
    rankOnly: await app.createKey({ name: 'rank', scopes: ['rank'] }),
  };
});

afterAll(() => app.close());

const huge = 'x'.repeat(70_000);
const packedHuge: Sent = { body: gzipSync(huge), headers: { 'content-encoding': 'gzip' } };
const elsewhere = place + 1;

async function codes(requests: Array<[path: string, sent: Sent]>): Promise<unknown[]> {
  const answers = await Promise.all(requests.map(([path, sent]) => app.post(path, sent)));
  return answers.map(codeOf);
}

describe('of several problems with a request, the first in this order is reported', () => {
  test('for the rank operation: size, place id, header, key, scope, whitelist, body, rank', async () => {
    const at = (placeid: number | string) => `/v1/ranker?placeid=${placeid}`;
    expect(
      await codes([
        ['/v1/ranker', { body: huge }],
        ['/v1/ranker', packedHuge],
        [at(elsewhere), packedHuge],
        ['/v1/ranker', { body: 'no JSON' }],
        [at('x'), { body: 'no JSON' }],
        [at(elsewhere), { body: 'no JSON' }],
        [at(elsewhere), { key: 'wrong', body: 'no JSON' }],
        [at(elsewhere), { key: keys.verifyOnly, body: 'no JSON' }],
        [at(elsewhere), { key: keys.good, body: 'no JSON' }],
        [at(place), { key: keys.good, body: 'no JSON' }],
        [at(place), { key: keys.good, body: rankBody({ rankeeId: 'x', newRankId: 0 }) }],
        [at(place), { key: keys.good, body: rankBody({ rankeeId: 4242, newRankId: 0 }) }],
        [at(place), { key: keys.good, body: rankBody({ rankeeId: 4242 }) }],
      ]),
    ).toEqual([
      'body_too_large',
      'body_too_large',
      'body_too_large',
      'missing_placeid',
      'invalid_request',
      'missing_authorization',
      'invalid_key',
      'key_not_allowed',
      'place_not_whitelisted',
      'invalid_request',
      'invalid_request',
      'rank_not_allowed',
      'member_not_found',
    ]);
  });

  test('for key verification: size, place id, header, key, scope, whitelist', async () => {
    const body = { placeid: elsewhere };
    const requests: Sent[] = [
      { body: huge },
      { body: 'no JSON' },
      { body: {} },
      { body: { placeid: 'x' } },
      { body },
      { key: 'wrong', body },
      { key: keys.rankOnly, body },
      { key: keys.good, body },
    ];
    expect(await codes(requests.map((sent) => ['/v1/apikey', sent]))).toEqual([
      'body_too_large',
      'invalid_request',
      'missing_placeid',
      'invalid_request',
      'missing_authorization',
      'invalid_key',
      'key_not_allowed',
      'place_not_whitelisted',
    ]);
  });
});
