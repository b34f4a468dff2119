import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { actions } from '../../../src/dashboard/server/actions.ts';
import { callWithin } from '../../../src/ports/platform.ts';
import { hostileTexts } from '../../attack/hostile.ts';
import { roles } from '../../support/open-test-app.ts';
import { openTestPage, type TestPage } from '../../support/open-test-page.ts';
import type { PageAnswer, PageVisitor } from '../../support/page-visitor.ts';
import { startWebhookSink, type WebhookSink } from '../../support/webhook-sink.ts';

let page: TestPage;
let ann: PageVisitor;
let sink: WebhookSink;

beforeAll(async () => {
  sink = await startWebhookSink();
  page = await openTestPage({ config: { webhooks: { allowPrivate: ['127.0.0.0/8'] } } });
  ann = await page.loggedIn();
});
afterAll(async () => {
  await page[Symbol.asyncDispose]();
  await sink[Symbol.asyncDispose]();
});

/** Runs an action that must succeed, and returns its JSON. */
async function does(path: string, body: unknown): Promise<PageAnswer['json']> {
  const answer = await ann.post(`/api/${path}`, body);
  expect(answer, answer.text).toMatchObject({ status: 200, json: { v: 1 } });
  return answer.json;
}

const memberOf = (user: string) => ann.read(`/api/member?user=${encodeURIComponent(user)}`);
const auditOf = async (action: string) => (await page.app.store.listAudit({ action, limit: 1 }))[0];

describe('a member', () => {
  test.each(['1001', 'Newcomer', '@newcomer', 'https://www.roblox.com/users/1001/profile'])(
    'is found by id, name and pasted address: %s',
    async (asked) => {
      expect(await memberOf(asked)).toMatchObject({
        member: {
          userId: 1001,
          name: 'Newcomer',
          highest: roles.trainee,
          roles: [{ name: 'Member' }, { name: 'Trainee' }],
        },
        suspension: null,
        changes: [],
      });
    },
  );

  test('that does not exist is reported at the field', async () => {
    const reader = await page.loggedIn();
    const hostile = hostileTexts.filter((text) => text.isWellFormed() && text.trim() !== '').slice(0, 12);
    for (const asked of ['nobody at all', 'NobodyHere', '99', ...hostile]) {
      const answer = await reader.get(`/api/member?user=${encodeURIComponent(asked)}`);
      expect(answer, asked).toMatchObject({ json: { success: false, field: 'user' } });
      expect([400, 404]).toContain(answer.status);
    }
  });

  test('is promoted, demoted, ranked, suspended and unsuspended, each after a test that predicts the change', async () => {
    const at = { user: 1001, does: 'promote', ifRank: roles.trainee, reason: 'passed' };
    expect(await does('rank/test', at)).toMatchObject({
      test: { allowed: true },
      move: {
        from: { name: 'Trainee' },
        to: { name: 'Officer' },
        steps: [{ kind: 'assign', role: { name: 'Officer' } }, {}],
      },
    });
    expect(await page.app.heldBy(1001)).toContain(roles.trainee);
    const promoted = await does('rank/change', at);
    expect(promoted.change).toMatchObject({
      state: 'applied',
      by: 'web:ann@host',
      via: 'page',
      rankeeName: 'Newcomer',
      reason: 'passed',
    });
    expect(await auditOf('rank.applied')).toMatchObject({ by: 'web:ann@host' });
    const { change } = await does('rank/change', { user: 1001, does: 'demote', ifRank: roles.officer });
    expect(change).toMatchObject({ roleId: roles.trainee });
    await does('rank/change', { user: 1001, does: 'set', rank: roles.officer });
    await does('rank/change', { user: 1001, does: 'suspend', for: '3d', ifRank: roles.officer });
    expect(await memberOf('1001')).toMatchObject({
      suspension: { kind: 'suspension', reason: null },
      changes: [{ hold: { does: 'begin' } }, {}, {}, {}],
    });
    const { message } = await does('suspensions/test', { user: 1001 });
    expect(message).toMatch(/^Newcomer \(1001\) .*Officer/);
    expect(await memberOf('1001')).toMatchObject({ suspension: { kind: 'suspension' }, changes: { length: 4 } });
    const lifted = await does('suspensions/lift', { user: 1001, reason: 'appeal' });
    expect(lifted.change.message).toBe(message);
    expect(await memberOf('1001')).toMatchObject({ suspension: null, member: { highest: roles.officer } });
    await does('rank/change', { user: 1001, does: 'set', rank: roles.trainee, for: '7d' });
    expect(await memberOf('1001')).toMatchObject({
      suspension: { kind: 'temporary' },
      member: { highest: roles.trainee },
    });
    await does('suspensions/lift', { user: 1001 });
  });

  test('changed elsewhere during a suspension: the test reports the conflict and the effect of force', async () => {
    await does('rank/change', { user: 1003, does: 'suspend', for: '3d' });
    const { clock, platform } = page.app.app;
    using call = callWithin(clock, 5_000, 'operator');
    await platform.assignRole({ userId: 1003, roleId: roles.trainee }, call);
    expect(await ann.post('/api/suspensions/test', { user: 1003 })).toMatchObject({
      status: 409,
      json: { code: 'conflict' },
    });
    expect(await memberOf('1003')).toMatchObject({ suspension: { state: 'active' } });
    const { message } = await does('suspensions/test', { user: 1003, force: true });
    expect((await does('suspensions/lift', { user: 1003, force: true })).change.message).toBe(message);
  });

  test('is not changed if the rank has changed since the test', async () => {
    const answer = await ann.post('/api/rank/change', { user: 1002, does: 'demote', ifRank: roles.captain });
    expect(answer).toMatchObject({ status: 409, json: { code: 'rank_differs' } });
  });

  test('that may not be ranked: the test names the failed check and its fix, and the change is refused', async () => {
    const owner = { user: 1, does: 'set', rank: roles.officer };
    const { test, move } = await does('rank/test', owner);
    expect(test).toMatchObject({ allowed: false });
    expect(test.checks).toContainEqual(
      expect.objectContaining({ state: 'FAIL', code: expect.any(String), try: expect.any(String) }),
    );
    expect(move).toBeNull();
    expect((await ann.post('/api/rank/change', owner)).status).toBeGreaterThanOrEqual(400);
  });

  test('only ranks that can be given are offered', async () => {
    const { roles: all, givable } = await ann.read('/api/roles');
    expect(all.map(({ name }: { name: string }) => name)).toContain('Owner');
    expect(givable).toContain(roles.officer);
    expect(givable).not.toContain(roles.owner);
  });
});

test('an extra role is given temporarily, to one member and to a list, and taken away, each after a test', async () => {
  await using laddered = await openTestPage({ config: { group: { ladder: [10, 20], rankOne: 'custom' } } });
  const { app } = laddered;
  const bea = await laddered.loggedIn();
  const post = async (path: string, body: object) => (await bea.post(`/api/${path}`, body)).json;
  const { givable, alongside } = await bea.read('/api/roles');
  expect(givable).not.toContain(roles.captain);
  expect(alongside).toContain(roles.captain);

  const given = { user: 1001, does: 'give', rank: roles.captain, for: '7d', reason: 'gamepass' };
  const { test, move } = await post('rank/test', given);
  expect(test).toMatchObject({ allowed: true });
  expect(move.steps).toEqual([{ kind: 'assign', role: { id: roles.captain, name: 'Captain', rank: 50 } }]);
  expect(await app.heldBy(1001)).not.toContain(roles.captain);
  expect((await post('rank/change', given)).change).toMatchObject({ kind: 'role_added', via: 'page' });
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.captain, roles.base]);
  // A member can have only one temporary role at a time.
  expect(await post('rank/test', given)).toMatchObject({ move: null, test: { allowed: false } });
  const taken = { user: 1001, does: 'take', rank: roles.captain };
  expect(await post('rank/change', { ...taken, for: '7d' })).toMatchObject({ field: 'for' });
  expect((await post('rank/change', taken)).change).toMatchObject({ kind: 'role_removed' });
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);

  const list = { does: 'give', rank: roles.captain, users: '1001' };
  for (const wrong of [{ rank: roles.officer }, { rank: undefined }, { rank: 77 }])
    expect(await post('list/test', { ...list, ...wrong })).toMatchObject({ success: false, field: 'rank' });
  await post('list/run', list);
  await expect.poll(() => app.heldBy(1001)).toContain(roles.captain);
  const counted = { group: app.app.group.title, since: 0, until: Number.MAX_SAFE_INTEGER };
  const tallies = await app.store.tallyChanges(counted);
  expect(tallies.filter(({ state, isQuiet }) => state === 'applied' && !isQuiet)).toEqual([]);
});

describe('a list', () => {
  const users =
    'Newcomer\tpassed\tMonday\n# those of Tuesday\n1002;late\n\nhttps://www.roblox.com/users/1003/profile\n1001';

  test('pasted from a spreadsheet runs with progress, and changes each member once', async () => {
    const asked = { does: 'set', rank: roles.officer, reason: 'training' };
    const { members } = await does('list/test', { ...asked, users });
    expect(members.map(({ rankeeId, line }: { rankeeId: number; line: number }) => [line, rankeeId])).toEqual([
      [1, 1001],
      [3, 1002],
      [5, 1003],
    ]);
    const { run } = await does('list/run', {
      ...asked,
      users: members.map(({ rankeeId }: { rankeeId: number }) => rankeeId).join('\n'),
    });
    expect(run).toMatchObject({ isRunning: true, done: 0, members: 3 });
    const reader = await page.loggedIn();
    const poll = async () => (await reader.read(`/api/run?id=${run.id}`)).run;
    await expect.poll(poll, { interval: 250 }).toMatchObject({ isRunning: false, done: 3, undo: null });
    const { list } = await poll();
    expect(list).toMatchObject({ left: [], stoppedBy: null, members: [{ state: expect.any(String) }, {}, {}] });
    for (const user of [1001, 1002, 1003]) expect(await page.app.heldBy(user)).toContain(roles.officer);
    expect(await auditOf('rank.list')).toMatchObject({ by: 'web:ann@host', detail: { does: 'end' } });
  });

  test('with an invalid line is refused at its field before anything changes', async () => {
    const lines = ['', 'Newcomer\nnot a user at all', 'NobodyHere', '1001, 1002, 1003'];
    for (const users of [...lines, ...hostileTexts.slice(0, 10).map((hostile) => `1001\n-${hostile}`)])
      for (const path of ['list/test', 'list/run'])
        expect(await ann.post(`/api/${path}`, { does: 'promote', users }), users).toMatchObject({
          status: 400,
          json: { field: 'users' },
        });
  });
});

describe('a key', () => {
  test('is created with its places, limited, rotated, paused, resumed and revoked', async () => {
    const made = await does('keys/create', {
      ...{ name: 'lobby', scopes: ['verify', 'rank'], maxRank: roles.officer, direction: 'promote' },
      places: '920587237\nhttps://www.roblox.com/games/5/Lobby',
    });
    expect(made).toMatchObject({
      secret: expect.stringMatching(/^rk_live_\w{36}$/),
      key: { maxRank: 20, direction: 'promote' },
    });
    expect(await page.app.verify(made.secret, 5)).toMatchObject({ status: 200 });
    expect(await auditOf('key.create')).toMatchObject({ by: 'web:ann@host' });
    expect((await does('keys/set', { key: 'lobby', maxRank: null, minRank: roles.trainee })).key).toMatchObject({
      maxRank: null,
      minRank: 10,
      direction: 'promote',
    });
    const rotated = await does('keys/rotate', { key: 'lobby', overlap: '0s' });
    expect(await page.app.verify(made.secret, 5)).toMatchObject({ status: 401 });
    expect(await page.app.verify(rotated.secret, 5)).toMatchObject({ status: 200 });
    expect((await does('keys/pause', { key: 'lobby' })).key).toMatchObject({ state: 'paused' });
    expect((await does('keys/resume', { key: 'lobby' })).key).toMatchObject({ state: 'active' });
    expect((await does('places/add', { key: 'lobby', places: '7', note: 'test place' })).entries).toMatchObject([
      { placeId: 7, outcome: 'added' },
    ]);
    for (const [path, status] of [
      ['disable', 403],
      ['enable', 200],
      ['remove', 403],
    ] as const) {
      await does(`places/${path}`, { key: 'lobby', places: '5' });
      expect(await page.app.verify(rotated.secret, 5), path).toMatchObject({ status });
    }
    expect((await does('keys/revoke', { key: 'lobby' })).key).toMatchObject({ state: 'revoked' });
    expect(await page.app.verify(rotated.secret, 7)).toMatchObject({ status: 401 });
  });

  test('is not created twice if the response was lost: the same idempotency key gets the same secret', async () => {
    const once = { 'idempotency-key': 'click-12345678' };
    const asked = { name: 'twice', scopes: ['verify'] };
    const answers = await Promise.all([1, 2].map(() => ann.post('/api/keys/create', asked, once)));
    answers.push(await ann.post('/api/keys/create', asked, once));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers[0]).toMatchObject({ status: 200 });
    expect(await ann.post('/api/keys/create', { ...asked, name: 'other' }, once)).toMatchObject({
      status: 422,
      json: { code: 'idempotency_mismatch' },
    });
    const stranger = await page.loggedIn();
    expect(await stranger.post('/api/keys/create', asked, once)).toMatchObject({
      json: { code: 'already_exists', field: 'name' },
    });
  });
});

test('a double click promotes once, and a refused request can be sent again', async () => {
  const once = { 'idempotency-key': 'promote-1234' };
  await does('rank/change', { user: 1002, does: 'set', rank: roles.trainee });
  const click = () => ann.post('/api/rank/change', { user: 1002, does: 'promote' }, once);
  const answers = await Promise.all([click(), click()]);
  expect(answers[0]?.json.change.id).toBe(answers[1]?.json.change.id);
  expect(await memberOf('1002')).toMatchObject({ member: { highest: roles.officer } });
  const wrong = { 'idempotency-key': 'corrected-1' };
  expect(await ann.post('/api/keys/create', { name: 'a b', scopes: ['rank'] }, wrong)).toMatchObject({
    json: { field: 'name' },
  });
  expect(await ann.post('/api/keys/create', { name: 'a-b', scopes: ['rank'] }, wrong)).toMatchObject({ status: 200 });
});

test('a webhook is added, tested, edited, paused, enabled and removed, and no document contains its address', async () => {
  const { webhook, secret } = await does('webhooks/add', {
    name: 'bot',
    url: `${sink.url}/private-path`,
    events: ['alarms'],
  });
  expect(webhook).toMatchObject({ name: 'bot', kind: 'standard', events: ['alarms'], state: 'enabled' });
  expect(secret).toMatch(/^whsec_/);
  expect(await does('webhooks/test', { webhook: 'bot' })).toMatchObject({ delivered: true });
  expect((await does('webhooks/set', { webhook: 'bot', events: ['changes', 'keys'] })).webhook).toMatchObject({
    events: ['changes', 'keys'],
  });
  expect((await does('webhooks/disable', { webhook: 'bot' })).webhook).toMatchObject({ state: 'disabled' });
  expect((await does('webhooks/enable', { webhook: 'bot', fromNow: true })).webhook).toMatchObject({
    state: 'enabled',
  });
  expect((await ann.get('/api/webhooks')).text).not.toContain('private-path');
  await does('webhooks/remove', { webhook: 'bot' });
  expect((await ann.read('/api/webhooks')).webhooks).toEqual([]);
});

test('the setup shows the completed steps towards a real group, and the problems with their fixes', async () => {
  await using other = await openTestPage();
  const visitor = await other.loggedIn();
  const setup = async () => (await visitor.read('/api/setup')).setup;
  const nothing = { isReal: false, hasKey: false, hasPlace: false, isUsed: false };
  expect(await setup()).toMatchObject(nothing);
  await visitor.post('/api/keys/create', { name: 'bot', scopes: ['rank'], isAnyPlace: true });
  expect(await setup(), 'the key needs no place').toMatchObject({ ...nothing, hasKey: true, hasPlace: true });
  await visitor.post('/api/keys/revoke', { key: 'bot' });
  const key = await other.app.createKey();
  expect(await setup()).toMatchObject({ ...nothing, hasKey: true, hasPlace: true });
  expect((await other.app.verify(key)).status).toBe(200);
  await visitor.post('/api/webhooks/add', { name: 'bot', url: 'https://hooks.example.com/x', events: [] });
  await visitor.post('/api/webhooks/disable', { webhook: 'bot' });
  const { findings, ok } = await setup();
  expect(ok).toBe(false);
  expect(findings).toContainEqual({
    ...{ check: 'webhooks', grade: 'FAIL' },
    ...{ text: expect.stringContaining('bot is disabled'), fix: 'rankd webhook enable bot' },
  });
});

test('a key for Discord has no secret, and people on Discord are linked and unlinked', async () => {
  const { key, secret } = await does('keys/create', { name: 'staff', scopes: ['rank'], forDiscord: true });
  expect({ secret, key }).toMatchObject({ secret: null, key: { forDiscord: true, secrets: [] } });
  const discord = '4400000000000000005';
  const linked = [{ discordId: discord, userId: 1001, linkedBy: 'web:ann@host' }];
  expect((await does('people/link', { discord, user: 'Newcomer' })).people).toMatchObject(linked);
  expect(await (await page.loggedIn()).read('/api/people')).toMatchObject({ people: linked });
  expect(await ann.post('/api/people/link', { discord, user: 'NobodyHere' })).toMatchObject({
    json: { field: 'user' },
  });
  expect(await ann.post('/api/people/link', { discord: 'ann', user: '1001' })).toMatchObject({
    json: { field: 'discord' },
  });
  expect((await does('people/unlink', { discord })).people).toEqual([]);
});

test.each([
  ['rank/change', { user: '1001', does: 'promote' }, 'user'],
  ['rank/change', { user: 1001, does: 'explode' }, 'does'],
  ['rank/change', { user: 1001, does: 'set' }, 'rank'],
  ['rank/test', { user: 1001, does: 'set', rank: 4_242 }, undefined],
  ['rank/change', { user: 1001, does: 'suspend' }, 'for'],
  ['rank/change', { user: 1001, does: 'suspend', for: 'long' }, 'for'],
  ['rank/change', { user: 1001, does: 'suspend', for: '1s' }, 'for'],
  ['rank/change', { user: 1001, does: 'promote', for: '3d' }, 'for'],
  ['keys/create', { name: 'x y', scopes: ['rank'] }, 'name'],
  ['keys/create', { name: 'main', scopes: [] }, 'scopes'],
  ['keys/create', { name: 'main', scopes: ['everything'] }, 'scopes'],
  ['keys/create', { name: 'main', scopes: ['rank'], places: '0' }, 'places'],
  ['keys/create', { name: 'main', scopes: ['rank'], maxRank: 4_242 }, 'maxRank'],
  ['keys/rotate', { key: 'main', overlap: 'soon' }, 'overlap'],
  ['places/add', { key: 'main', places: 'my place' }, 'places'],
  ['webhooks/add', { name: 'Bot!', url: 'https://example.com', events: [] }, 'name'],
  ['webhooks/add', { name: 'bot', url: 'example', events: [] }, 'url'],
  ['webhooks/add', { name: 'bot', url: 'https://discord.gg/x', events: [] }, 'url'],
  ['webhooks/add', { name: 'bot', url: 'https://example.com', events: ['nothing'] }, 'events'],
])('%s %j is refused at the field %s', async (path, body, field) => {
  const answer = await ann.post(`/api/${path}`, body);
  if (field === undefined) expect(answer.json).toMatchObject({ test: { allowed: false } });
  else expect(answer).toMatchObject({ status: 400, json: { field } });
});

test('every action needs an idempotency key, and a view-only session can take none of them', async () => {
  const viewer = await page.loggedIn({ isViewOnly: true, lifeMs: 3_600_000 });
  expect(await viewer.read('/api/session')).toMatchObject({ session: { viewOnly: true } });
  for (const path of Object.keys(actions)) {
    const refused = await viewer.post(`/api/${path}`);
    expect(refused, path).toMatchObject({ status: 403, json: { code: 'view_only' } });
    const keyless = await ann.post(`/api/${path}`, {}, { 'idempotency-key': undefined });
    expect(keyless, path).toMatchObject({ status: 400, json: { field: 'idempotency-key' } });
  }
  for (const path of ['status', 'budget', 'changes', 'keys', 'suspensions', 'webhooks', 'roles', 'member?user=1001'])
    await viewer.read(`/api/${path}`);
  expect(await viewer.post('/api/logout')).toMatchObject({ status: 200 });
});
