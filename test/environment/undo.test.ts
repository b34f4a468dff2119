import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';

const { trainee, officer, captain } = sampleRoles;

test('an undo on Open Cloud that was stopped with Ctrl-C continues where it stopped, without unnecessary calls', async () => {
  await using system = await openCloudHome();
  const { home, roblox, secret } = system;
  appendFileSync(home.path('rankd.yaml'), 'policy: { breaker: { enabled: false } }\n');
  const targets = Array.from({ length: 12 }, (_, index) => 30_000_000_000 + index);
  const rolesOf = (index: number) => [[officer], [trainee, captain], [officer, captain]][index % 3] ?? [];
  for (const [index, userId] of targets.entries()) roblox.group.setMember(userId, rolesOf(index));
  const held = () => targets.map((userId) => roblox.group.held(userId));
  const before = held();
  await using daemon = await system.startDaemon();
  for (const rankeeId of targets) {
    expect((await daemon.rank(secret, { rankeeId, newRankId: 10 })).status).toBe(200);
    roblox.expectNeverWithoutRole(rankeeId);
  }
  const writes = () => roblox.journal.writes().length;
  const raidWrites = writes();

  roblox.latencyMs = 300;
  const args = ['history', 'undo', '--key', 'game', '--since', '1h', '-y'];
  const first = home.start(args);
  const printed = Promise.all([text(first.stdout), text(first.stderr), once(first, 'exit')]);
  await expect.poll(writes, { interval: 5 }).toBeGreaterThan(raidWrites);
  first.kill('SIGINT');
  const [out, err, [code]] = await printed;
  expect(code, err).toBe(130);
  expect(out).toMatch(/^undo_\w+: of 12 members, \d+ put back; \d+ not reached\.\n$/);
  expect(err).toContain('Stopping after the members in progress');
  const again = /To continue with the rest: rankd (.+)/.exec(err)?.[1] ?? '';
  expect(again).toMatch(/^history undo --key key_\w+ --since \d{4}-\d\d-\d\dT[\d:.]+Z$/);
  const open = await home.json<{ changes: unknown[] }>('history', 'list', '--state', 'pending', 'unknown');
  expect(open.changes).toEqual([]);

  roblox.latencyMs = 0;
  const second = await home.json<{ undo: { members: Array<{ state: string }>; left: [] } }>(...again.split(' '), '-y');
  expect(second.undo.left).toEqual([]);
  expect(second.undo.members.map(({ state }) => state).sort()).toContain('already');
  expect(held()).toEqual(before);
  // One write for each role that differs, by `index % 3`: captain (1), officer and trainee (0), all three (2).
  const needed = targets.map((_, index) => (index % 3 === 1 ? 1 : index % 3 === 0 ? 2 : 3));
  expect(writes() - raidWrites).toBe(needed.reduce((sum, count) => sum + count, 0));
  expect(roblox.violations()).toEqual([]);
});

test('a member whose write Roblox refuses is reported as refused, and the others are restored', async () => {
  await using system = await openCloudHome();
  const { home, roblox, secret } = system;
  const targets = [20_001, 20_002, 20_003, 20_004, 20_005, 20_006];
  for (const userId of targets) roblox.group.setMember(userId, [sampleRoles.officer]);
  await using daemon = await system.serve();
  for (const rankeeId of targets) {
    expect((await daemon.rank(secret, { rankeeId, newRankId: 50 })).status).toBe(200);
  }
  const [refusedMember = 0, ...others] = targets;
  roblox.faults.add({ operation: 'assign', userId: refusedMember, kind: 'status 403', body: '<html></html>' });
  const { code, stdout } = await home.here(['history', 'undo', '--key', 'game', '--since', '1h', '-y', '--json']);
  const { undo } = JSON.parse(stdout);
  expect([code, undo.left, undo.stoppedBy]).toEqual([5, [], null]);
  const statesOf = (rankeeId: number) => undo.members.find((each: { rankeeId: number }) => each.rankeeId === rankeeId);
  expect(statesOf(refusedMember)).toMatchObject({ state: 'refused', code: 'platform_credential' });
  for (const userId of others) expect(roblox.group.held(userId)).toEqual([sampleRoles.officer]);
});

test('a rejected Roblox key ends the undo at once, and the remaining members are reported', async () => {
  await using system = await openCloudHome();
  const { home, roblox, secret } = system;
  const before = roblox.group.held(sampleUsers.officer);
  await using daemon = await system.serve();
  expect((await daemon.rank(secret, { rankeeId: sampleUsers.officer, newRankId: 10 })).status).toBe(200);
  await daemon.stop(); // a running daemon would also check the key with Roblox
  roblox.credential.enabled = false;
  const requestCount = roblox.journal.entries.length;
  const result = await home.here(['history', 'undo', '--key', 'game', '--since', '1h', '-y', '--json']);
  expect(result.code).toBe(77);
  expect(result.json()).toMatchObject({
    undo: { left: [sampleUsers.officer], stoppedBy: { code: 'platform_credential' } },
  });
  expect(roblox.journal.requests('introspect').length).toBeGreaterThan(0);
  expect(roblox.journal.entries.length - requestCount).toBeLessThanOrEqual(2);
  roblox.credential.enabled = true;
  expect((await home.here(['history', 'undo', '--key', 'game', '--since', '1h', '-y'])).code).toBe(0);
  expect(roblox.group.held(sampleUsers.officer)).toEqual(before);
});
