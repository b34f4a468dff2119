import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { type DaemonState, RecentProblems } from '../../src/daemon/recent-problems.ts';
import { pausedAmong } from '../../src/usecases/keys/keys.ts';
import { findUndoTargets, runUndo } from '../../src/usecases/undo/undo-changes.ts';
import { operate } from '../contracts/store/samples.ts';
import { codeOf } from '../support/answers.ts';
import { openTestApp, type TestApp } from '../support/open-test-app.ts';
import { tempDir } from '../support/temp-dir.ts';

const operator = 'cli:ann@host';
const officers = Array.from({ length: 500 }, (_, index) => 100_001 + index);

/**
 * Starts a daemon with default settings on a group of 500 officers. `held` contains the ranks of each officer's roles;
 * `ladder` contains the ranks of the roles that replace each other.
 */
function openGroup({ held = [20], ladder }: { held?: number[]; ladder?: number[] } = {}): Promise<TestApp> {
  const groupFile = join(tempDir(), 'group.yaml');
  const roles = [
    { name: 'Member', rank: 1, base: true },
    { name: 'Trainee', rank: 10 },
    { name: 'Officer', rank: 20 },
    { name: 'Bot', rank: 200 },
  ];
  const members = officers.map((id) => ({ id, roles: [...held] }));
  writeFileSync(
    groupFile,
    stringify({
      name: 'Raided',
      id: 1,
      roles,
      owner: 1,
      acting_account: 2,
      members: [...members, { id: 2, roles: [200] }],
    }),
  );
  const group = ladder === undefined ? {} : { group: { ladder } };
  return openTestApp({ config: { platform: { kind: 'simulated', groupFile }, ...group } });
}

async function demotedCount(app: TestApp): Promise<number> {
  const held = await Promise.all(officers.map((officer) => app.heldBy(officer)));
  return held.filter((roles) => roles?.length === 1).length;
}

test('a raid with one leaked key, all at once, reaches ten members', async () => {
  await using app = await openGroup();
  const key = await app.createKey();
  const demote = (rankeeId: number) => app.rank(key, { rankeeId, newRankId: 1 });
  const answers = await Promise.all(officers.map(demote));

  expect(await demotedCount(app)).toBe(10);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(await demotedCount(app));
  expect(answers.every(({ status }) => status === 200 || status === 429)).toBe(true);
  const pauses = (await app.store.listAudit({ limit: 1_000 })).filter(({ action }) => action === 'key.pause');
  expect(pauses).toMatchObject([
    { by: 'daemon', detail: { name: 'main', reason: expect.stringContaining('more than 10') } },
  ]);
  const warnings = app.logLines.map((line) => JSON.parse(line)).filter(({ problem }) => problem === 'paused key');
  const [{ subject: keyId = '', detail: { reason: why } = { reason: '' } } = {}] = pauses;
  const msg = `key main (${keyId}) is now paused; to resume it: rankd key resume main`;
  expect(warnings).toMatchObject([{ level: 'warn', keyId, key: 'main', why, msg }]);

  const problems = new RecentProblems();
  for (const line of app.logLines) problems.note(line);
  const shown = async () => {
    const lasting: DaemonState['lasting'] = {
      'audit heads': false,
      configuration: false,
      credential: false,
      group: false,
      platform: false,
      roles: false,
      'plain http': false,
      'simulated keys': false,
      trust: false,
    };
    const pausedKeys = await pausedAmong(app.app, problems.keyIds);
    const standing = {
      ...{ lasting, pausedKeys, isCredentialDead: false, platformSucceededAt: { read: 0, write: 0 } },
      ...{ storeWorks: async () => true, isChangeOpen: async () => false, failingWebhooks: new Set<string>() },
    };
    return (await problems.newestFirst(standing, Date.now())).map(({ message }) => message);
  };
  expect(await shown()).toContain(`${msg}: ${why}`);

  expect(codeOf(await app.rank(key, { rankeeId: officers[499], newRankId: 20 }))).toBe('key_paused');
  await operate(app.app).pauseKey({ keyId: pauses[0]?.subject ?? '', paused: false, reason: 'looked at' }, operator);
  expect(await shown()).not.toContain(`${msg}: ${why}`);
  await expect.poll(async () => (await demote(officers[499] ?? 0)).status).toBe(200); // once the bucket has refilled
});

test("a raid that requests members' current rank to take their lower ladder roles also reaches ten", async () => {
  await using app = await openGroup({ held: [10, 20], ladder: [10, 20] });
  const key = await app.createKey();
  const answers = await Promise.all(
    officers.slice(0, 60).map((rankeeId) => app.rank(key, { rankeeId, newRankId: 20 })),
  );
  const held = await Promise.all(officers.map((officer) => app.heldBy(officer)));
  expect(held.filter((roles) => roles?.length === 2)).toHaveLength(10);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
  expect(answers.map(codeOf)).toContain('key_paused');
});

test("an undo of a key's changes restores every member whom a raid reached", async () => {
  await using app = await openGroup();
  const key = await app.createKey();
  const raid = officers.slice(0, 100).map((rankeeId) => app.rank(key, { rankeeId, newRankId: 1 }));
  await Promise.all(raid);
  expect(await demotedCount(app)).toBeGreaterThan(0);

  const keyId = (await app.store.findKey('main'))?.id ?? '';
  await operate(app.app).revokeKey(keyId, operator);
  const selection = { keyId };
  const { members, changes, undoId } = await findUndoTargets(app.app, selection);
  const command = { selection, undoId, by: operator, dryRun: false };
  const { left } = await runUndo(
    app.app,
    { members, changes, command },
    { stop: new AbortController().signal, report: () => {} },
  );
  expect([await demotedCount(app), left]).toEqual([0, []]);
});

test('a raid with five leaked keys reaches thirty members', async () => {
  await using app = await openGroup();
  const keys = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => app.createKey({ name })));
  const raid = officers.map((rankeeId, index) => app.rank(keys[index % keys.length] ?? '', { rankeeId, newRankId: 1 }));
  await Promise.all(raid);
  expect(await demotedCount(app)).toBe(30);
});
