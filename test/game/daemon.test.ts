import { describe, expect, test } from 'vitest';
import { createKey } from '../../src/usecases/keys/keys.ts';
import { documentedLimits } from '../support/fake-open-cloud/budgets.ts';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type OpenCloudApp, type OpenCloudAppOptions, openCloudAppOn } from '../support/open-cloud-app.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { pacedTime } from '../support/paced-clock.ts';
import { forwardTo, type GamePlayer } from './game.ts';
import { openSystem, type System, type SystemOptions, type SystemScene, systems } from './systems.ts';

const { officer, trainee } = sampleRoles;
const [basicAdmin] = systems as [System, ...System[]];
const players: GamePlayer[] = [
  { id: sampleUsers.trainee, name: 'Ann' },
  { id: sampleUsers.officer, name: 'Bob' },
];

interface Choices {
  daemon?: OpenCloudAppOptions;
  losesFirstAnswer?: boolean;
  /** Collects the status of each response. */
  statuses?: Set<number>;
}

/** Runs `body` with a game that has the admin system, and a daemon with its own fake Roblox; both share one clock. */
async function withDaemon(
  system: System,
  body: (scene: SystemScene, daemon: OpenCloudApp<ManualClock>) => Promise<void>,
  { daemon: daemonOptions, losesFirstAnswer, statuses, ...options }: Partial<SystemOptions> & Choices = {},
): Promise<void> {
  const clock = new ManualClock();
  await using daemon = await clock.passUntil(openCloudAppOn(clock, { deadlineMs: 20_000, ...daemonOptions }));
  await using scene = await openSystem(system, {
    ...{ clock, players, secrets: { rankd: daemon.secret } },
    serve: async (request) => {
      const answer = await forwardTo(daemon.url)(request);
      if ('status' in answer) statuses?.add(answer.status);
      return losesFirstAnswer && scene.game.requests.length === 1 ? { raise: 'HttpError: NetFail' } : answer;
    },
    ...options,
  });
  await body(scene, daemon);
  expect(daemon.fake.violations()).toEqual([]);
}

describe.each(systems)('$name', (system) => {
  test('a promotion reaches Roblox, and the caller gets its outcome or rankd’s refusal', () =>
    withDaemon(system, async (scene, { fake }) => {
      expect(await scene.type('Bob', `${system.typed('promote')} Ann quiz`)).toMatch(/Ann \(1001\) .*Officer/);
      expect(fake.group.held(sampleUsers.trainee)).toEqual([officer]);
      await scene.run('task.wait(2) return true');
      expect(await scene.type('Bob', `${system.typed('setrank')} Ann nosuchrole`)).toMatch(/nosuchrole/);
      expect(fake.group.held(sampleUsers.trainee)).toEqual([officer]);
    }));
});

test('a role name works without spaces and in any case; an ambiguous name is refused with both roles', () =>
  withDaemon(
    basicAdmin,
    async (scene, { fake }) => {
      expect(await scene.type('Bob', ':setrank Ann SENIOR-officer')).toMatch(/Senior Officer/);
      expect(fake.group.held(sampleUsers.trainee)).toEqual([77_000_030]);
      await scene.run('task.wait(2) return true');
      const output = await scene.type('Bob', ':setrank Ann headcoach');
      expect(output).toContain('Head Coach');
      expect(output).toContain('Head_Coach');
      expect(fake.group.held(sampleUsers.trainee)).toEqual([77_000_030]);
    },
    {
      daemon: {
        prepare: ({ group }) =>
          group.roles.push(
            { id: 77_000_030, name: 'Senior Officer', rank: 30 },
            { id: 77_000_031, name: 'Head Coach', rank: 31 },
            { id: 77_000_032, name: 'Head_Coach', rank: 32 },
          ),
      },
    },
  ));

test('a change with `once` is made once, whichever game server requests it and whoever is playing there', () =>
  withDaemon(basicAdmin, async (scene, { fake, clock, url, secret }) => {
    const ask = (other: SystemScene) =>
      other.run<{ code: string; message: string; changeId: string }>(`
        local Rankd = require(game:GetService("ServerScriptService").Rankd)
        local result = Rankd.new():promote({ rankee = ${sampleUsers.trainee}, ranker = ${sampleUsers.officer}, once = "purchase-1" })
        return { code = result.code, message = result.message, changeId = result.changeId }`);
    const first = await ask(scene);
    await using elsewhere = await openSystem(basicAdmin, {
      ...{ clock, players: [], secrets: { rankd: secret }, serve: forwardTo(url) },
    });
    expect(await ask(elsewhere)).toEqual(first);
    expect(first.code).toBe('ok');
    expect(fake.journal.requests('assign')).toHaveLength(1);
    expect(fake.group.held(sampleUsers.trainee)).toEqual([officer]);
  }));

test('a refusal with `once` is repeated even after its cause is gone; a different `once` is a different change', () =>
  withDaemon(basicAdmin, async (scene, { fake, clock }) => {
    const ask = (once: string) =>
      scene.run<string>(
        `local Rankd = require(game:GetService("ServerScriptService").Rankd)
        return Rankd.new():setRank({ rankee = ${sampleUsers.stranger}, rank = 20, atLeast = true, once = ... }).code`,
        once,
      );
    expect(await ask('pass-1')).toBe('member_not_found');
    fake.group.setMember(sampleUsers.stranger, []);
    await clock.advance(60_000);
    expect(await ask('pass-1')).toBe('member_not_found');
    expect(await ask('pass-2')).toBe('ok');
  }));

test('a script reads a member and the roles, and uses atLeast and ifRank', () =>
  withDaemon(basicAdmin, async (scene, { fake }) => {
    const found = await scene.run<Record<string, unknown>>(`
      local rankd = require(game:GetService("ServerScriptService").Rankd).new()
      local member = rankd:getMember(${sampleUsers.trainee})
      local roles = {}
      for _, role in rankd:getRoles().roles do
        table.insert(roles, role.name)
      end
      return {
        member = { member.userId, member.rank, member.role, #member.roles },
        stranger = { rankd:getMember(${sampleUsers.stranger}).rank, rankd:getMember(${sampleUsers.stranger}).role or "none" },
        roles = roles,
        differs = rankd:promote({ rankee = ${sampleUsers.trainee}, ifRank = "Captain" }).message,
        raised = rankd:setRank({ rankee = ${sampleUsers.trainee}, rank = 20, atLeast = true, ifRank = 10 }).code,
        again = rankd:setRank({ rankee = ${sampleUsers.trainee}, rank = 10, atLeast = true }).code,
      }`);
    expect(found).toMatchObject({
      member: [sampleUsers.trainee, 10, 'Trainee', 2],
      stranger: [0, 'none'],
      roles: expect.arrayContaining(['Trainee', 'Officer']),
      differs: expect.stringMatching(/is Trainee \(rank 10\); the request expects Captain\. Nothing was changed\./),
      ...{ raised: 'ok', again: 'unchanged' },
    });
    expect(fake.group.held(sampleUsers.trainee)).toEqual([officer]);
  }));

test('suspend takes a rank away and unsuspend gives it back early; a key without that scope can do neither', () =>
  withDaemon(basicAdmin, async (scene, { fake, app, clock, secret: plain }) => {
    const held = () => fake.group.held(sampleUsers.trainee);
    const { secret } = await createKey(app, {
      ...{ name: 'staff', mode: 'live', scopes: ['rank', 'suspend'], place: { id: 1 }, by: 'cli:ann@host' },
    });
    await scene.game.change({ secrets: { rankd: secret } });
    expect(await scene.type('Bob', ':suspend Ann 3d rude')).toMatch(/Ann \(1001\) is suspended until/);
    expect(held()).toEqual([]);
    await clock.advance(60_000);
    expect(await scene.type('Bob', ':unsuspend Ann')).toMatch(/Ann \(1001\) .*Trainee/);
    expect(held()).toEqual([trainee]);
    const refused = await scene.run(
      `local Rankd = require(game:GetService("ServerScriptService").Rankd)
      return Rankd.new({ key = ... }):suspend({ rankee = game.Players.Ann, seconds = 3600 }).code`,
      plain,
    );
    expect(refused).toBe('key_not_allowed');
    expect(held()).toEqual([trainee]);
  }));

test('if the response is lost after the change, Roblox gets one write, and the caller gets success', () =>
  withDaemon(
    basicAdmin,
    async (scene, { fake }) => {
      expect(await scene.type('Bob', ':promote Ann')).toMatch(/Ann \(1001\) .*Officer/);
      expect(scene.game.requests).toHaveLength(2);
      expect(fake.journal.requests('assign')).toHaveLength(1);
      expect(fake.group.held(sampleUsers.trainee)).toEqual([officer]);
    },
    { losesFirstAnswer: true },
  ));

test('if the daemon is killed between the change and the response, Roblox gets one write, and the caller gets success', async () => {
  await using system = await openCloudHome();
  const { roblox, secret } = system;
  let daemon = await system.startDaemon();
  await using scene = await openSystem(basicAdmin, {
    ...{ clock: pacedTime, players, secrets: { rankd: secret } },
    serve: async (request) => {
      const answer = await forwardTo(daemon.url)(request);
      if (scene.game.requests.length > 1) return answer;
      await daemon.stop('SIGKILL');
      daemon = await system.startDaemon();
      return { raise: 'HttpError: ConnectionReset' };
    },
  });
  expect(await scene.type('Bob', ':promote Ann')).toMatch(/Ann \(1001\) .*Officer/);
  expect(scene.game.requests).toHaveLength(2);
  expect(roblox.journal.requests('assign')).toHaveLength(1);
  expect(roblox.group.held(sampleUsers.trainee)).toEqual([officer]);
});

test('a team of 200 is changed within Roblox’s limits, and no 429 reaches the caller', () => {
  const team = Array.from({ length: 200 }, (_, index) => ({ id: 30_001 + index, name: `Cadet${index}`, team: 'Red' }));
  const statuses = new Set<number>();
  return withDaemon(
    basicAdmin,
    async (scene, { fake }) => {
      expect(await scene.type('Bob', ':promote %red')).toBe('Hint Ranks 200 of 200 promoted.');
      expect(team.map(({ id }) => fake.group.held(id))).toEqual(team.map(() => [officer]));
      expect(fake.journal.requests('assign')).toHaveLength(200);
      expect([...statuses].toSorted()).toEqual([200, 429, 503]);
      expect(scene.game.maxInFlight).toBe(4);
      // At 60 changes a minute, the last 20 can start only after three minutes.
      expect(scene.game.now).toBeLessThan(200);
      expect(scene.game.output.filter((line) => line.endsWith('of 200 are done…')).length).toBeGreaterThan(2);
    },
    {
      ...{ statuses, players: [...players, ...team], config: { maxTargets: 200 } },
      daemon: {
        fake: { limits: { ...documentedLimits, assign: 60, unassign: 60 } },
        limits: { rankBurst: 5 },
        prepare: ({ group }) => {
          for (const { id } of team) group.setMember(id, [trainee]);
        },
      },
    },
  );
});
