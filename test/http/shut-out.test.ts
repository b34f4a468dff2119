import { expect, test } from 'vitest';
import type { Store } from '../../src/ports/index.ts';
import { newSecret, operate } from '../contracts/store/samples.ts';
import { type ExpectedError, expectError } from '../support/answers.ts';
import { openTestApp, place } from '../support/open-test-app.ts';
import { platformWith } from '../support/platform-with.ts';

const operator = 'cli:ann@host';
const invalidKey = { status: 401, code: 'invalid_key', error: 'Invalid API Key' };
const notWhitelisted = { status: 403, code: 'place_not_whitelisted', error: 'Place not whitelisted' };
const tooHigh = { status: 403, code: 'rank_not_allowed', error: 'Rank not allowed' };

type ShutOut = (store: Store, keyId: string) => Promise<unknown>;
const places = (keyId: string) => ({ keyId, placeIds: [place] });
const withdrawals: Array<[string, ShutOut, ExpectedError]> = [
  ['its key is revoked', (store, keyId) => operate({ store }).revokeKey(keyId, operator), invalidKey],
  [
    'its secret is replaced without an overlap',
    (store, keyId) =>
      operate({ store }).rotateKey({ keyId, secret: newSecret('next'), oldExpiresAt: Date.now() }, operator),
    invalidKey,
  ],
  [
    'its key gets a ceiling below the requested rank',
    (store, keyId) => operate({ store }).setRules({ keyId, rules: { maxRank: 19 } }, operator),
    tooHigh,
  ],
  [
    'the workspace is suspended',
    (store) => operate({ store }).updateWorkspace({ active: false }, operator),
    invalidKey,
  ],
  ['the plan ends', (store) => operate({ store }).updateWorkspace({ plan: 'free' }, operator), invalidKey],
  ['its place is removed', (store, keyId) => operate({ store }).removeEntries(places(keyId), operator), notWhitelisted],
  [
    'its place is disabled',
    (store, keyId) => operate({ store }).setEntriesActive({ ...places(keyId), active: false }, operator),
    notWhitelisted,
  ],
];

/** Users that the test adds to the simulated group, with the same roles as member 1001. */
const members = Array.from({ length: 60 }, (_, index) => 900_001 + index);

test.each(withdrawals)('none of sixty admitted changes begins once %s', async (_way, shutOut, refused) => {
  let reads = 0;
  let writes = 0;
  const mayRead = Promise.withResolvers<void>();
  await using app = await openTestApp({
    config: { limits: { rankPerMinute: 0 } },
    platform: (group) =>
      platformWith(group, {
        getMember: async (userId, call) => {
          if (!members.includes(userId)) return group.getMember(userId, call);
          reads += 1;
          await mayRead.promise;
          const member = await group.getMember(1001, call);
          return member && { ...member, userId };
        },
        assignRole: async (change, call) => {
          writes += 1;
          return group.assignRole(change, call);
        },
      }),
  });
  const key = await app.createKey();
  const [{ id = '' } = {}] = await app.store.listKeys();
  const answers = members.map((rankeeId) => app.rank(key, { rankeeId }));
  await expect.poll(() => reads).toBe(members.length);
  await shutOut(app.store, id);
  mayRead.resolve();
  for (const answer of await Promise.all(answers)) expectError(answer, refused);
  expect(writes).toBe(0);
  const stored = await app.store.listChanges({ limit: 100 });
  expect(stored).toHaveLength(members.length);
  for (const change of stored) expect(change).toMatchObject({ state: 'refused', code: refused.code });
});
