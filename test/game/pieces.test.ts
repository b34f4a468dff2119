import { describe, expect, test } from 'vitest';
import type { GameAnswer, GamePlayer, GameRequest } from './game.ts';
import { applied, openScene, refused, type Scene, source } from './scene.ts';

// Tests the scripts in src/game/pieces, which change ranks by themselves through the module Rankd.

const base = { id: 71, name: 'Member', rank: 1 };
const officer = { id: 72, name: 'Officer', rank: 20 };
const rankd = {
  class: 'ModuleScript' as const,
  path: ['ServerScriptService', 'Rankd'],
  source: source('Rankd/init.luau').replace('\turl = nil,', '\turl = "https://rankd.example.com",'),
};

/** Starts a game that runs the script with changed settings. `roles` contains each user's roles. */
async function open(
  name: string,
  settings: Array<[string | RegExp, string]>,
  options: {
    players?: GamePlayer[];
    roles?: Record<number, object[]>;
    answer?: (request: GameRequest) => GameAnswer;
    /** Replaces the default response if it returns one. */
    refuses?: (request: GameRequest) => GameAnswer | undefined;
  } & {
    passes?: Record<string, number[]>;
    isMarketplaceDown?: boolean;
    withoutRankd?: boolean;
  } = {},
): Promise<Scene> {
  const { roles = {}, answer = (request: GameRequest) => applied(request), refuses, withoutRankd, ...world } = options;
  const script = settings.reduce((text, [from, to]) => text.replace(from, to), source(`pieces/${name}.server.luau`));
  return openScene({
    players: [],
    ...world,
    serve: (request) => {
      const refusal = refuses?.(request);
      if (refusal !== undefined) return refusal;
      if (!request.url.includes('/v2/member')) return answer(request);
      const held = roles[Number(new URL(request.url).searchParams.get('robloxUserId'))] ?? [];
      const { rank = 0, name: roleName = null } = (held.at(-1) ?? {}) as Partial<typeof base>;
      return { status: 200, body: JSON.stringify({ success: true, message: 'x', rank, roleName, roles: held }) };
    },
    scripts: [
      ...(withoutRankd ? [] : [rankd]),
      { class: 'Script', path: ['ServerScriptService', name], source: script },
    ],
  });
}

const asked = ({ game }: Scene) =>
  game.requests
    .filter(({ method }) => method === 'POST')
    .map(({ body }) => JSON.parse(body) as Record<string, unknown>);
const pass = (scene: Scene, seconds: number) =>
  scene.clock.passUntil(scene.game.run('task.wait(...) return true', seconds));

describe('rank-on-join', () => {
  test('gives the first rank to members who only hold the base role, once per player and server', async () => {
    await using scene = await open('rank-on-join', [], {
      roles: { 1001: [base], 1002: [base, officer], 1003: [] },
      players: [
        { id: 1001, name: 'Ann' },
        { id: 1002, name: 'Bob' },
      ],
    });
    await scene.game.join({ id: 1003, name: 'Cid' });
    await pass(scene, 5);
    await scene.game.leave('Ann');
    await scene.game.join({ id: 1001, name: 'Ann' });
    await pass(scene, 5);
    expect(asked(scene)).toEqual([
      { robloxUserId: 1001, rankeeName: 'Ann', rank: 2, atLeast: true, reason: 'joined the game' },
    ]);
    expect(scene.game.output).toEqual([]);
  });

  test.each(['/v2/member', '/v2/rank'])('retries a player who joins again if %s was refused', async (path) => {
    let isRefused = true;
    const refusal = refused(403, 'place_not_whitelisted');
    await using scene = await open('rank-on-join', [], {
      roles: { 1001: [base] },
      players: [{ id: 1001, name: 'Ann' }],
      refuses: (request) => (isRefused && request.url.includes(path) ? refusal : undefined),
    });
    await pass(scene, 5);
    expect(scene.game.output).toEqual(['warn rank-on-join: Ann: rankd says place_not_whitelisted.']);
    isRefused = false;
    const before = asked(scene).length;
    await scene.game.leave('Ann');
    await scene.game.join({ id: 1001, name: 'Ann' });
    await pass(scene, 5);
    expect(asked(scene).slice(before)).toMatchObject([{ robloxUserId: 1001, rank: 2 }]);
    expect(scene.game.output).toHaveLength(1);
  });
});

describe('gamepass-rank', () => {
  const settings: Array<[string | RegExp, string]> = [
    [/\{ pass = 0, .*\},/, '{ pass = 11, rank = 20 :: number | string }, { pass = 12, rank = "Captain" },'],
  ];

  test('gives each owner at least the pass’s rank, with the same idempotency key on every server', async () => {
    await using scene = await open('gamepass-rank', settings, {
      passes: { 11: [1001], 12: [1002] },
      players: [
        { id: 1001, name: 'Ann' },
        { id: 1003, name: 'Cid' },
      ],
    });
    await scene.game.join({ id: 1002, name: 'Bob' });
    await pass(scene, 5);
    const shared = { atLeast: true };
    expect(asked(scene)).toEqual([
      { ...shared, robloxUserId: 1001, rank: 20, reason: 'game pass 11' },
      { ...shared, robloxUserId: 1002, rank: 'Captain', reason: 'game pass 12' },
    ]);
    expect(scene.headers('idempotency-key')).toEqual(['setRank:pass-11-1001', 'setRank:pass-12-1002']);
  });

  const finish = (scene: Scene, id: number, isPurchased: boolean) =>
    scene.game.run(`
      local finished = game:GetService("MarketplaceService").PromptGamePassPurchaseFinished
      finished:Fire(game.Players.Ann, ${id}, ${isPurchased})
      return true`);

  test('gives the rank once Roblox confirms a purchase, and nothing for a cancelled purchase or a different pass', async () => {
    await using scene = await open('gamepass-rank', settings, { players: [{ id: 1001, name: 'Ann' }] });
    await pass(scene, 2);
    for (const [id, isPurchased] of [
      [11, false],
      [99, true],
      [11, true],
    ] as const)
      await finish(scene, id, isPurchased);
    await pass(scene, 12);
    expect(asked(scene)).toEqual([]);
    await scene.game.change({ passes: { 11: [1001] } });
    await pass(scene, 12);
    expect(asked(scene)).toEqual([{ robloxUserId: 1001, rank: 20, atLeast: true, reason: 'game pass 11' }]);
    expect(scene.game.output).toEqual([]);
  });

  test('gives no rank for a purchase that only the player’s device reports', async () => {
    await using scene = await open('gamepass-rank', settings, { players: [{ id: 1001, name: 'Ann' }] });
    await pass(scene, 2);
    await finish(scene, 11, true);
    await pass(scene, 70);
    expect(asked(scene)).toEqual([]);
    expect(scene.game.output).toEqual([expect.stringContaining('does not confirm that Ann bought 11')]);
  });

  test('reports that the marketplace fails, and gives no rank', async () => {
    await using scene = await open('gamepass-rank', settings, {
      isMarketplaceDown: true,
      players: [{ id: 1001, name: 'Ann' }],
    });
    await pass(scene, 2);
    expect(scene.game.output).toEqual(Array(2).fill(expect.stringContaining('did not report whether Ann owns')));
    expect(asked(scene)).toEqual([]);
  });
});

describe('points-rank', () => {
  const setPoints = (points: unknown) => `game.Players.Ann:SetAttribute("Points", ${points})`;
  const ranks = (scene: Scene) => asked(scene).map(({ robloxUserId, rank, atLeast }) => [robloxUserId, rank, atLeast]);

  test('promotes by an attribute, at most once a minute, to the highest step reached so far', async () => {
    await using scene = await open(
      'points-rank',
      [['{ points = 500, rank = 20 },', '{ points = 500, rank = 20 }, { points = 900, rank = 30 },']],
      {
        players: [{ id: 1001, name: 'Ann' }],
      },
    );
    for (const points of [50, 99, '"many"', 'nil', 100, 120, 500, 900, 10]) {
      await scene.game.run(`${setPoints(points)} return true`);
      await pass(scene, 1);
    }
    expect(ranks(scene)).toEqual([[1001, 10, true]]);
    await pass(scene, 70);
    expect(ranks(scene)).toEqual([
      [1001, 10, true],
      [1001, 30, true],
    ]);
    await pass(scene, 120);
    expect(asked(scene)).toHaveLength(2);
    expect(asked(scene)[1]).toMatchObject({ reason: '900 points' });
  });

  test('promotes by a number in leaderstats, even if it is added later', async () => {
    await using scene = await open('points-rank', [], { players: [{ id: 1001, name: 'Ann' }] });
    await pass(scene, 5);
    const script = `
      local stats = RobloxWorld.new("Folder", "leaderstats", game.Players.Ann)
      local points = RobloxWorld.new("IntValue", "Points", stats, { Value = 90 })
      task.wait(1)
      points.Value = 600
      return true`;
    await scene.clock.passUntil(scene.game.run(script));
    await pass(scene, 40);
    expect(ranks(scene)).toEqual([[1001, 20, true]]);
  });

  test('gives a player who leaves the rank that was reached', async () => {
    await using scene = await open('points-rank', [], { players: [{ id: 1001, name: 'Ann' }] });
    await scene.game.run(`${setPoints(100)} return true`);
    await pass(scene, 1);
    await scene.game.run(`${setPoints(500)} return true`);
    await scene.game.leave('Ann');
    await pass(scene, 70);
    expect(ranks(scene)).toEqual([
      [1001, 10, true],
      [1001, 20, true],
    ]);
  });

  test('reports a refusal, and retries when the points change, a minute later at the earliest', async () => {
    let count = 0;
    await using scene = await open('points-rank', [], {
      players: [{ id: 1001, name: 'Ann' }],
      answer: (request) => {
        count += 1;
        return count === 1 ? refused(404, 'member_not_found') : applied(request);
      },
    });
    await scene.game.run(`${setPoints(100)} return true`);
    await pass(scene, 1);
    await scene.game.run(`${setPoints(101)} return true`);
    await pass(scene, 1);
    expect(count).toBe(1);
    expect(scene.game.output).toEqual([expect.stringContaining('points-rank: 1001: rankd says member_not_found.')]);
    await pass(scene, 70);
    expect(count).toBe(2);
  });

  test('does not repeat a refused change until the points change', async () => {
    await using scene = await open('points-rank', [], {
      players: [{ id: 1001, name: 'Ann' }],
      answer: () => refused(404, 'member_not_found'),
    });
    await scene.game.run(`${setPoints(100)} return true`);
    await pass(scene, 300);
    expect(asked(scene)).toHaveLength(1);
    await scene.game.run(`${setPoints(101)} return true`);
    await pass(scene, 300);
    expect(asked(scene)).toHaveLength(2);
  });
});

test.each(['rank-on-join', 'gamepass-rank', 'points-rank'])(
  '%s without Rankd causes one warning and no error',
  async (name) => {
    await using scene = await open(name, [], { withoutRankd: true, players: [{ id: 1001, name: 'Ann' }] });
    await pass(scene, 12);
    expect(scene.game.output).toEqual([`warn ${name}: put the module Rankd into ServerScriptService.`]);
  },
);

test.each(['rank-on-join', 'gamepass-rank', 'points-rank'])(
  '%s names the key that it needs, and has 30 to 80 lines',
  (name) => {
    const text = source(`pieces/${name}.server.luau`);
    expect(text).toMatch(/rankd key create \w+ --system --direction promote --max-rank \d+/);
    expect(text.split('\n').length - 1).toBeGreaterThanOrEqual(30);
    expect(text.split('\n').length - 1).toBeLessThanOrEqual(80);
  },
);
