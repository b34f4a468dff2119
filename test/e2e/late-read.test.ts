import { writeFileSync } from 'node:fs';
import { describe, test, vi } from 'vitest';
import { sampleRoles } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { createPostgresDatabase } from '../support/postgres-database.ts';

const { recruit, trainee, officer } = sampleRoles;
const member = 20_001;
const other = 20_002;

vi.setConfig({ maxConcurrency: 3 });

/** A late read comes after 8 s. With `env`, rankd's timers run four times as fast, so 8 s take 2 s of real time. */
const lagMs = 2_000;
const env = { NODE_OPTIONS: `--import ${new URL('../support/fast-clock-preload.ts', import.meta.url)}` };

async function openSystem() {
  const opened = await openCloudHome();
  const { home, roblox } = opened;
  for (const userId of [member, other]) roblox.group.setMember(userId, [trainee]);
  const reads = (userId: number) =>
    roblox.journal
      .requests('memberships')
      .filter((read) => read.userId === userId)
      .map(({ at }) => at);
  return {
    ...opened,
    reads,
    rank: (userId: number, rank: string, ...args: string[]) =>
      home.here(['rank', 'set', String(userId), rank, ...args], { env }),
    /**
     * Runs `work` while Roblox carries out the first write for the member but responds with 400. Reads do not reflect
     * the write until the member has been read twice.
     */
    refusedWhileReadsLag: async <T>(work: () => Promise<T>) => {
      roblox.lagMs = 60_000;
      roblox.faults.add({ operation: 'assign', kind: 'status 400', when: 'after', userId: member });
      const working = work();
      await vi.waitUntil(() => reads(member).length === 2, { timeout: 30_000, interval: 20 });
      roblox.lagMs = 0;
      return working;
    },
  };
}

describe.concurrent('a change by a command is verified by a late read:', () => {
  test('without a daemon, the command announces the late read, and makes it before it prints the result', async ({
    expect,
  }) => {
    await using system = await openSystem();
    const { code, stdout, stderr } = await system.rank(member, '20');
    expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: expect.stringContaining('is now Officer') });
    expect(stderr).toContain('This command reads the member again in 8 s, because no daemon is running.');
    const [planned = 0, late = 0, ...more] = system.reads(member);
    expect(more).toEqual([]);
    expect(late - planned).toBeGreaterThanOrEqual(lagMs);
  });

  test('with daemons only on other machines, the command reads the member itself, and names the daemons', async ({
    expect,
  }) => {
    const database = await createPostgresDatabase();
    await using _database = database;
    await using system = await openSystem();
    const withStore = { ...env, RANKD_STORE_URL: database.url };
    await using daemon = await system.serve(withStore);
    expect(daemon.url).toContain('http');
    const elsewhere = ['rank', 'set', String(member), '20', '--data-dir', system.home.path('elsewhere')];
    const { code, stderr } = await system.home.here(elsewhere, { env: withStore });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).toContain(
      'reads the member again in 8 s, because the daemons of this database have other data directories.',
    );
    expect(stderr).toMatch(/This is stored in .*; the daemon \S+ is using it\./);
  });

  test('without a daemon, a change that Roblox has lost is reported as unknown, not as done', async ({ expect }) => {
    await using system = await openSystem();
    system.roblox.writesOnlyEcho = true;
    const { code, stdout, stderr } = await system.rank(member, '20', '--json');
    expect({ code, stdout }).toEqual({ code: 75, stdout: '' });
    expect(JSON.parse(stderr)).toMatchObject({ code: 'outcome_unknown' });
    expect(await system.latestChange()).toMatchObject({ state: 'unknown' });
  });

  test('a refused change that Roblox made anyway is not reported as refused, even if reads lag', async ({ expect }) => {
    await using system = await openSystem();
    const { code, stdout, stderr } = await system.refusedWhileReadsLag(() => system.rank(member, '20'));
    expect({ code, stdout }).toEqual({ code: 75, stdout: '' });
    expect(stderr).toMatch(/^Roblox refused the change, but .* reads the member again in 8 s\./);
    expect(stderr).toContain('could not be confirmed');
    expect(await system.latestChange()).toMatchObject({ state: 'unknown' });
  });

  test('a refused change in a list that Roblox made anyway is not reported as refused, even if reads lag', async ({
    expect,
  }) => {
    await using system = await openSystem();
    writeFileSync(system.home.path('list.txt'), `${member}\n${other}\n`);
    const args = ['rank', 'set', '20', '--file', 'list.txt', '--yes', '--json'];
    const { code, stdout } = await system.refusedWhileReadsLag(() => system.home.here(args, { env }));
    expect(code).toBe(75);
    expect(JSON.parse(stdout).list.members).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ rankeeId: member, state: 'unknown' }),
        expect.objectContaining({ rankeeId: other, state: 'changed' }),
      ]),
    );
  });

  test('an undo does not report members as restored if Roblox has not restored them', async ({ expect }) => {
    await using system = await openSystem();
    expect((await system.home.here(['rank', 'set', String(member), '20'], { isInterrupted: true })).code).toBe(0);
    system.roblox.writesOnlyEcho = true;
    const undo = ['history', 'undo', '--by', 'cli:tester@test', '--since', '1h', '--yes', '--json'];
    const { code, stdout } = await system.home.here(undo, { env });
    expect(code).toBe(75);
    expect(JSON.parse(stdout)).toMatchObject({ undo: { members: [{ rankeeId: member, state: 'unknown' }] } });
    expect(system.roblox.group.held(member)).toEqual([officer]);
  });

  test('with a daemon, which makes the late read, the command does not wait, and shares the daemon’s trust in responses', async ({
    expect,
  }) => {
    await using system = await openSystem();
    await using daemon = await system.startDaemon(env);
    system.roblox.writesOnlyEcho = true;
    const confirmed = await system.rank(member, '20');
    expect(confirmed).toMatchObject({ code: 0, stderr: expect.not.stringContaining('reads the member again') });
    expect(system.reads(member)).toHaveLength(1);
    const trust = async () =>
      (await system.home.json<{ status: { platformTrust: { believesAnswers: boolean } } }>('status')).status
        .platformTrust;
    await expect.poll(trust).toMatchObject({ believesAnswers: false });
    const refused = await system.rank(other, '20');
    expect(refused).toMatchObject({ code: 77, stderr: expect.stringContaining('did not carry it out') });
    await expect.poll(async () => (await system.latestChange()).state).toBe('failed');
    expect(daemon.process.exitCode).toBe(null);
  });

  test('if the late read is interrupted, the command reports the outcome that Roblox reported', async ({ expect }) => {
    await using system = await openSystem();
    system.roblox.group.setMember(member, [recruit, officer]);
    const { code, stdout } = await system.home.here(['rank', 'set', String(member), '10'], { isInterrupted: true });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('is now') });
    expect(system.reads(member)).toHaveLength(1);
  });
});
