import diagnostics from 'node:diagnostics_channel';
import type { FastifyInstance } from 'fastify';
import { afterAll, expect, test } from 'vitest';
import { accessChecks } from '../../src/core/access.ts';
import { discordCommands } from '../../src/core/discord-commands.ts';
import type { RankChange } from '../../src/core/model.ts';
import type { Platform } from '../../src/ports/index.ts';
import { recordOutcome } from '../../src/usecases/change/change-record.ts';
import { checkNames } from '../../src/usecases/change/plan-change.ts';
import { linkPerson } from '../../src/usecases/discord/discord-people.ts';
import { createDiscordKey } from '../../src/usecases/keys/keys.ts';
import { applied, begin, newChange, operate, operator } from '../contracts/store/samples.ts';
import { discordPublicKey, discordIds as ids } from '../support/discord-interactions.ts';
import { startFakeDiscord } from '../support/fake-discord.ts';
import { openTestApp, place, roles, send, type TestApp } from '../support/open-test-app.ts';
import { configFor, type KeyRoute, keyRoutes, type RouteRule, routeRules, routeTitle } from './route-rules.ts';

const roleOf: Record<number, number[]> = { 1: [], 10: [roles.trainee], 20: [roles.officer], 50: [roles.captain] };
const [first, second, officer, owner] = [1001, 1005, 1002, 9000];

const fake = await startFakeDiscord();
afterAll(() => fake[Symbol.asyncDispose]());

/** A Discord role id for each key. A person with that role has the same id. */
const inDiscord = Array.from({ length: 40 }, (_, index) => ({ role: String(33e17 + index * 1e6), key: `key${index}` }));
const discord = {
  ...{ application: ids.application, server: ids.server, publicKey: discordPublicKey, apiBaseUrl: fake.apiBaseUrl },
  rows: inDiscord.map((row) => ({ ...row, at: '' })),
};

/** A test app for one rule, which sends requests to all routes, one after another. */
class Scene {
  readonly app: TestApp;
  readonly #group: Platform;
  readonly #rule: RouteRule;
  #keys = 0;

  constructor(app: TestApp, group: Platform, rule: RouteRule) {
    this.app = app;
    this.#group = group;
    this.#rule = rule;
  }

  static async open(rule: RouteRule, isAlongside = false): Promise<Scene> {
    let group: Platform | undefined;
    const app = await openTestApp({
      config: { ...configFor(rule, isAlongside), discord },
      platform: (simulated) => {
        group = simulated;
        return simulated;
      },
    });
    if (group === undefined) throw new Error('the app has no group');
    return new Scene(app, group, rule);
  }

  /**
   * Sends the route's request under the rule's conditions. Returns the roles before and after if they changed.
   * Otherwise, returns `done` for a 200, or else the error code.
   */
  async answer(route: KeyRoute): Promise<string> {
    const { ranker, before, first: keyChange, member: who, key } = this.#rule;
    const operated = operate(this.app);
    const { scope, mode, ...keyed } = { scope: route.scope, mode: 'live' as const, ...key?.(route) };
    this.#keys += 1;
    const name = `key${this.#keys}`;
    const request = { name, mode, scopes: [scope], ...keyed };
    const isInDiscord = route.command !== undefined;
    if (isInDiscord) await createDiscordKey(this.app.app, { ...request, by: operator });
    const secret = isInDiscord ? '' : await this.app.createKey(request);
    const id = (await this.app.store.findKey(name))?.id ?? '';
    const member = who === 'the owner' ? owner : first;
    const rankerId = ranker === 'the member' ? member : ranker === 'an Officer' ? officer : 0;
    await this.#prepare(route, member);
    if (before === 'the key changed another') {
      await this.#prepare(route, second);
      expect(await this.#send(route, { secret, member: second, rankerId: 0 })).toMatchObject({ status: 200 });
    }
    if (before === 'the member was changed' && route.during === undefined) await this.#record({ rankeeId: member });
    if (before === 'the ranker changed another') await this.#record({ rankeeId: second, rankerId });
    if (keyChange === 'revoke') await operated.revokeKey(id, operator);
    if (keyChange === 'pause') await operated.pauseKey({ keyId: id, paused: true, reason: 'it leaked' }, operator);
    if (keyChange === 'suspend the workspace') await operated.updateWorkspace({ active: false }, operator);
    const held = await this.app.heldBy(member);
    const { status, json } = await this.#send(route, { secret, member, rankerId });
    if (keyChange === 'suspend the workspace') await operated.updateWorkspace({ active: true }, operator);
    const now = await this.app.heldBy(member);
    if (String(now) !== String(held)) return `${held} became ${now}`;
    return status === 200 ? 'done' : String((json as { code?: string }).code);
  }

  /**
   * Sends the request. Uses `fetch` for routes in other services' formats, because `send` checks responses against the
   * OpenAPI document, which omits these routes.
   */
  async #send(
    { url, header, command, body }: KeyRoute,
    { secret, member, rankerId }: { secret: string; member: number; rankerId: number },
  ): Promise<{ status: number; json: unknown }> {
    const path = url.replace(':group', '1').replace(':user', String(member));
    const address = `${this.app.url}${path}?placeid=${place}`;
    if (command !== undefined) return this.#say(command, { options: body(member), rankerId });
    const asked = { ...body(member), ...(rankerId !== 0 && { rankerId }) };
    if (header === undefined) return send(address, { method: 'POST', body: asked, key: secret });
    const answer = await fetch(address, { method: 'POST', body: JSON.stringify(asked), headers: { [header]: secret } });
    return { status: answer.status, json: await answer.json() };
  }

  /**
   * Runs a slash command. If rankd refuses it, returns the code from the log, because the reply contains only a
   * sentence.
   */
  async #say(name: string, { options, rankerId }: { options: object; rankerId: number }) {
    const { role = '' } = inDiscord[this.#keys] ?? {};
    if (rankerId !== 0) await linkPerson(this.app.app, { discordId: role, userId: rankerId, by: operator });
    const command = { name, options: { ...options }, roles: [role], userId: role };
    await fake.discord.runCommand(`${this.app.url}/discord/interactions`, command);
    const line = this.app.logLines.findLast((one) => one.includes('"command from Discord"'));
    const { code } = JSON.parse(line ?? '{}') as { code?: string };
    return { status: code === undefined ? 200 : 400, json: { code } };
  }

  /** Gives the member the roles and the hold that the request starts from. */
  async #prepare({ from, during }: KeyRoute, member: number): Promise<void> {
    const { store } = this.app;
    const group = this.app.app.group.title;
    for (const { id } of await store.listHolds({ group, rankeeId: member, states: ['active'], limit: 9 }))
      await store.updateHold(id, (hold) => ({ holds: [{ ...hold, state: 'lifted', endedAt: 1 }], events: [] }));
    const isSuspended = this.#rule.member === 'suspended by the operator';
    const hold = isSuspended ? ({ kind: 'suspension', rank: 20 } as const) : during;
    if (hold !== undefined && member !== owner) {
      const [rolesBefore = [], rolesAfter = []] = [from, hold.rank].map((rank) =>
        [...(roleOf[rank] ?? []), roles.base].toSorted((a, b) => a - b),
      );
      const byKey = hold.kind === 'suspension' && !isSuspended;
      const part = {
        does: 'begin',
        id: `hold_${member}_${this.#keys}`,
        kind: hold.kind,
        endsAt: Date.now() + 9e6,
      } as const;
      await this.#record({
        rankeeId: member,
        rolesBefore,
        rolesAfter,
        hold: part,
        ...(byKey && { keyId: 'key_other' }),
      });
    }
    if (member !== owner) await this.#give(member, roleOf[this.#rule.holding ?? hold?.rank ?? from] ?? []);
  }

  /** Records a recent change, applied by the operator or with a different key. */
  async #record({ rolesBefore = [1], rolesAfter = [2], ...rest }: Partial<RankChange> & { rankeeId: number }) {
    const { keyId: _, placeId: _place, ...byOperator } = newChange();
    const now = Date.now();
    const group = this.app.app.group.title;
    const id = `chg_${rest.rankeeId}_${this.#keys}_${now}`;
    const change = { ...byOperator, id, group, by: operator, requestedAt: now, rolesBefore, rolesAfter, ...rest };
    const { latestId } = await this.app.store.latestChange(rest.rankeeId);
    await begin(this.app.store, change, { after: latestId });
    await recordOutcome({ store: this.app.store, clock: this.app.app.clock }, change.id, { ...applied, rolesAfter });
  }

  async #give(userId: number, wanted: number[]): Promise<void> {
    const call = { signal: new AbortController().signal, deadlineAt: Number.POSITIVE_INFINITY, lane: 'test' };
    const held = (await this.app.heldBy(userId)) ?? [];
    for (const roleId of wanted.filter((id) => !held.includes(id)))
      await this.#group.assignRole({ userId, roleId }, call);
    for (const roleId of held.filter((id) => id !== roles.base && !wanted.includes(id)))
      await this.#group.unassignRole({ userId, roleId }, call);
  }
}

test.each(Object.entries(routeRules))(
  'every route by which a key can change a rank refuses what a rule forbids: %s',
  async (_name, rule) => {
    const found: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    for (const isAlongside of [false, true]) {
      const scene = await Scene.open(rule, isAlongside);
      await using _app = scene.app;
      for (const [index, route] of keyRoutes.entries()) {
        const answer = rule.answer(route);
        if (typeof answer === 'object' || (route.isAlongside ?? false) !== isAlongside) continue;
        const title = `${index} ${routeTitle(route)}`;
        expected[title] = answer;
        found[title] = await scene.answer(route);
      }
    }
    expect(found).toEqual(expected);
  },
);

test('every request of these tests is allowed if no rule forbids it', async () => {
  const found: string[] = [];
  for (const isAlongside of [false, true]) {
    const scene = await Scene.open({ answer: () => '' }, isAlongside);
    await using _app = scene.app;
    for (const route of keyRoutes) {
      if ((route.isAlongside ?? false) === isAlongside) found.push(await scene.answer(route));
    }
  }
  expect(found.filter((answer) => !answer.includes(' became '))).toEqual([]);
});

test('every check of a change has a column in the table of rules', () => {
  const checks = [...accessChecks, ...checkNames.map((name) => ({ name }))].map(({ name }) => name);
  // `key` has several columns, and the other three check the group rather than the key
  const others = ['key', 'platform', 'rank', 'member'];
  expect(Object.keys(routeRules)).toEqual(expect.arrayContaining(checks.filter((name) => !others.includes(name))));
});

test('every route of the server by which a key can change a rank is in these tests', async () => {
  const registered = new Set<string>();
  const watch = (message: unknown) => {
    const { fastify } = message as { fastify: FastifyInstance };
    fastify.addHook('onRoute', ({ method, url }) => {
      if ([method].flat().some((one) => one !== 'GET' && one !== 'HEAD')) registered.add(url);
    });
  };
  diagnostics.subscribe('fastify.initialization', watch);
  const app = await openTestApp();
  diagnostics.unsubscribe('fastify.initialization', watch);
  await app.close();
  for (const other of ['/v1/apikey', '/roblox/webhook']) registered.delete(other);
  expect([...registered].toSorted()).toEqual([...new Set(keyRoutes.map(({ url }) => url))].toSorted());
  const others = ['whois', 'link', 'undo']; // the first two change no rank, and an undo is treated as the operator's
  const commands = discordCommands.map(({ name }) => name).filter((name) => !others.includes(name));
  expect([...new Set(keyRoutes.flatMap(({ command = [] }) => command))].toSorted()).toEqual(commands.toSorted());
});
