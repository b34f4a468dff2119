import { expect, test } from 'vitest';
import type { Store } from '../../src/ports/index.ts';
import { operate } from '../contracts/store/samples.ts';
import { expectError } from '../support/answers.ts';
import { openTestApp, place } from '../support/open-test-app.ts';
import { platformWith } from '../support/platform-with.ts';

const operator = 'cli:ann@host';
const invalidKey = { status: 401, code: 'invalid_key', error: 'Invalid API Key' };
const notWhitelisted = { status: 403, code: 'place_not_whitelisted', error: 'Place not whitelisted' };

type ShutOut = (store: Store, keyId: string) => Promise<unknown>;
const places = (keyId: string) => ({ keyId, placeIds: [place] });
const ways: Array<[string, ShutOut, typeof invalidKey]> = [
  ['its key is revoked', (store, keyId) => operate({ store }).revokeKey(keyId, operator), invalidKey],
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

test.each(ways)('a change that was let in does not begin once %s', async (_way, shutOut, refused) => {
  const looked = Promise.withResolvers<void>();
  const shown = Promise.withResolvers<void>();
  let writes = 0;
  await using app = await openTestApp({
    platform: (group) =>
      platformWith(group, {
        getMember: async (userId, call) => {
          looked.resolve();
          await shown.promise;
          return group.getMember(userId, call);
        },
        assignRole: async (change, call) => {
          writes += 1;
          return group.assignRole(change, call);
        },
      }),
  });
  const key = await app.createKey();
  const [{ id = '' } = {}] = await app.store.listKeys();
  const answer = app.rank(key);
  await looked.promise;
  await shutOut(app.store, id);
  shown.resolve();
  expectError(await answer, refused);
  expect(writes).toBe(0);
  expect(await app.store.listChanges({ limit: 9 })).toMatchObject([{ state: 'refused', code: refused.code }]);
});
