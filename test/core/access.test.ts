import { describe, expect, test } from 'vitest';
import { describeRefusal, type RankdError } from '../../src/base/errors.ts';
import { type AccessQuestion, accessChecks, invalidKey, keyState, refusalOf } from '../../src/core/access.ts';
import type { Key } from '../../src/core/model.ts';
import type { KeyRecord } from '../../src/ports/index.ts';

const now = Date.UTC(2026, 5, 1);
const question: AccessQuestion = { scope: 'rank', group: 'group 7 on apis.roblox.com', placeId: 42, now };

const key: Key = {
  id: 'key_1',
  name: 'main-game',
  mode: 'live',
  scopes: ['verify', 'rank'],
  createdAt: now - 1_000,
  secrets: [{ masked: 'rk_live_012…3jd', createdAt: now - 1_000 }],
};

const accepted: KeyRecord = {
  workspace: { id: 'ws_1', name: 'Group', plan: 'top', active: true, createdAt: 0 },
  key,
  secretId: '1',
  entry: { keyId: 'key_1', placeId: 42, active: true, note: '', addedAt: 0 },
};

test('a valid key from an active place is allowed', () => {
  expect(refusalOf(accepted, question)).toBeUndefined();
  expect(refusalOf(accepted, { ...question, scope: 'verify' })).toBeUndefined();
});

describe('an invalid key', () => {
  const refusals: Array<[string, KeyRecord, string, RegExp]> = [
    [
      'in a suspended workspace',
      { ...accepted, workspace: { ...accepted.workspace, active: false } },
      'workspace_suspended',
      /suspended/,
    ],
    [
      'on the free plan',
      { ...accepted, workspace: { ...accepted.workspace, plan: 'free' } },
      'not_top_plan',
      /top plan/,
    ],
    ['that is revoked', { ...accepted, key: { ...key, revokedAt: now - 1 } }, 'revoked', /revoked/],
    ['that is expired', { ...accepted, key: { ...key, expiresAt: now } }, 'expired', /expired/],
    ['made for the simulated group', { ...accepted, key: { ...key, isSimulated: true } }, 'simulated', /simulated/],
    [
      'rotated out',
      { ...accepted, retiring: { since: now - 9, until: now } },
      'rotated_out',
      /a rotation of the key replaced/,
    ],
  ];

  test.each(refusals)('%s is rejected, and only the log gives the reason', (_, record, reason, words) => {
    const error = refused(record);
    expect(error).toMatchObject({ code: 'invalid_key', details: { reason, keyId: 'key_1' } });
    expect(error.message).not.toMatch(words);
    expect(describeRefusal(error.details ?? expect.fail())).toMatch(words);
  });

  test('gets the same message, whatever the reason', () => {
    const messages = refusals.map(([, record]) => refused(record).message);
    expect(new Set([...messages, invalidKey({ reason: 'unknown' }, 'rankd key create NAME').message]).size).toBe(1);
  });

  test('reveals nothing about its scopes or places', () => {
    const { entry: _, ...offWhitelist } = accepted;
    expect(refused({ ...offWhitelist, key: { ...key, scopes: ['verify'], revokedAt: now } }).code).toBe('invalid_key');
  });
});

test('a key from the simulated group is valid for every simulated group, and so is a real one', () => {
  const simulated = { ...accepted, key: { ...key, isSimulated: true } };
  for (const group of ['the simulated group', 'the simulated group of /srv/group.yaml']) {
    expect(refusalOf(simulated, { ...question, group })).toBeUndefined();
    expect(refusalOf(accepted, { ...question, group })).toBeUndefined();
  }
});

test('a key is valid to the last millisecond before it expires, and so is the old secret of a rotation', () => {
  expect(refusalOf({ ...accepted, key: { ...key, expiresAt: now + 1 } }, question)).toBeUndefined();
  expect(refusalOf({ ...accepted, retiring: { since: now, until: now + 1 } }, question)).toBeUndefined();
});

describe('a known key', () => {
  test('from place 0 is refused with the advice to publish the game, not to whitelist place 0', () => {
    const { entry: _, ...offWhitelist } = accepted;
    expect(refusalOf(offWhitelist, { ...question, placeId: 0 })).toMatchObject({
      code: 'place_not_whitelisted',
      message: expect.stringContaining('Publish the game'),
      hint: expect.stringContaining('rankd whitelist add PLACE'),
    });
  });

  test('from a place that is not whitelisted is refused with the id of that place', () => {
    const { entry: _, ...offWhitelist } = accepted;
    for (const placeId of [43, 44, 43]) {
      expect(refusalOf(offWhitelist, { ...question, placeId })?.message).toContain(`Place ${placeId} is not`);
    }
  });

  test('without the required scope is refused with the name of that scope', () => {
    const verifyOnly: KeyRecord = { ...accepted, key: { ...key, scopes: ['verify'] } };
    expect(refused(verifyOnly)).toMatchObject({
      code: 'key_not_allowed',
      message: expect.stringContaining('lacks the rank scope; it has only verify.'),
      hint: expect.stringContaining('--scope verify rank'),
    });
    expect(refusalOf(verifyOnly, { ...question, scope: 'verify' })).toBeUndefined();
  });

  test('from a place that is not whitelisted is refused with the command that adds it', () => {
    const { entry: _, ...unlisted } = accepted;
    expect(refused(unlisted)).toMatchObject({
      code: 'place_not_whitelisted',
      message: expect.stringMatching(/Place 42 is not on the whitelist.*rankd whitelist add 42/),
      hint: 'rankd whitelist add 42 --key main-game',
    });
  });

  test('from a disabled place is refused with the command that enables it', () => {
    const disabled = { ...accepted, entry: { keyId: 'key_1', placeId: 42, active: false, note: '', addedAt: 0 } };
    expect(refused(disabled)).toMatchObject({
      code: 'place_not_whitelisted',
      message: expect.stringMatching(/disabled.*rankd whitelist enable 42/),
      hint: 'rankd whitelist enable 42 --key main-game',
    });
  });

  test('paused by the breaker can verify but not rank', () => {
    const paused: KeyRecord = { ...accepted, key: { ...key, pausedAt: now - 1 } };
    expect(refused(paused)).toMatchObject({
      code: 'key_paused',
      message: expect.stringContaining('rankd key resume'),
    });
    expect(refusalOf(paused, { ...question, scope: 'verify' })).toBeUndefined();
  });
});

test('the first failed check decides the refusal: workspace, key, scope, whitelist, breaker', () => {
  expect(accessChecks.map(({ name }) => name)).toEqual(['workspace', 'key', 'scope', 'whitelist', 'breaker']);
  const { entry: _, ...nothingRight } = {
    ...accepted,
    workspace: { ...accepted.workspace, active: false },
    key: { ...key, revokedAt: now, scopes: [], pausedAt: now },
  };
  const repaired = [
    nothingRight,
    { ...nothingRight, workspace: accepted.workspace },
    { ...accepted, key: { ...key, scopes: [], pausedAt: now }, entry: undefined },
    { ...accepted, key: { ...key, pausedAt: now }, entry: undefined },
    { ...accepted, key: { ...key, pausedAt: now } },
  ].map(({ entry, ...rest }: { entry?: KeyRecord['entry'] | undefined } & Omit<KeyRecord, 'entry'>) =>
    refused({ ...rest, ...(entry !== undefined && { entry }) }),
  );
  expect(repaired.map(({ details, code }) => [code, details?.reason])).toEqual([
    ['invalid_key', 'workspace_suspended'],
    ['invalid_key', 'revoked'],
    ['key_not_allowed', 'missing_scope'],
    ['place_not_whitelisted', 'not_listed'],
    ['key_paused', 'paused'],
  ]);
});

describe("a key's state", () => {
  const old = { masked: 'rk_live_abc…def', createdAt: 0 };

  test.each<[string, Partial<Key>]>([
    ['active', {}],
    ['active', { expiresAt: now + 1 }],
    ['expired', { expiresAt: now }],
    ['rotating', { secrets: [...key.secrets, { ...old, expiresAt: now + 1 }] }],
    ['active', { secrets: [...key.secrets, { ...old, expiresAt: now }] }],
    ['expired', { expiresAt: now, secrets: [...key.secrets, { ...old, expiresAt: now + 1 }] }],
    ['revoked', { revokedAt: now - 1, expiresAt: now - 1 }],
  ])('is %s with %o', (state, change) => {
    expect(keyState({ ...key, ...change }, now)).toBe(state);
  });
});

function refused(record: KeyRecord): RankdError {
  const refusal = refusalOf(record, question);
  if (refusal === undefined) throw new Error('was not refused');
  return refusal;
}
