import { readFileSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { sampleUsers, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { parseModel, scriptsOf } from '../support/roblox-model.ts';
import { CliHome } from '../support/run-cli.ts';
import { forwardTo, Game } from './game.ts';

test('the files that init writes, put in the places that it prints, change a rank from the game’s chat without any edits', async () => {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  const roblox = await startFakeOpenCloud();
  onTestFinished(() => roblox.close());
  writeFileSync(home.path('roblox.key'), roblox.apiKey, { mode: 0o600 });
  const env = { RANKD_PLATFORM_BASE_URL: roblox.baseUrl, RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl };
  const flags = ['--group', `${roblox.groupId}`, '--credential-file', 'roblox.key', '--url', 'rankd.example.com'];
  const key = ['--key', 'my-game', '--place', '1', '--out', 'my-game.key'];
  const { code, stderr } = await home.here(['init', ...flags, ...key, '--system', 'chat'], { env });
  expect(code, stderr).toBe(0);
  const inserted = [...stderr.matchAll(/right-click (\w+), Insert from File: (.+)$/gm)];
  expect(inserted).toHaveLength(1);

  await using daemon = await DaemonProcess.start(home, { env });
  await using game = await Game.start({
    clock: systemClock,
    secrets: { rankd: readFileSync(home.path('my-game.key'), 'utf8').trim() },
    serve: forwardTo(daemon.url),
    groupId: roblox.groupId,
    users: { newcomer: sampleUsers.trainee },
    players: [
      { id: sampleUsers.otherAdmin, name: 'Staff' },
      { id: sampleUsers.officer, name: 'Officer' },
    ],
    ranks: { [sampleUsers.otherAdmin]: 200, [sampleUsers.officer]: 20 },
    scripts: inserted.flatMap(([, service = '', file = '']) =>
      scriptsOf(parseModel(readFileSync(file, 'utf8'))).map((script) => ({
        ...script,
        path: [service, ...script.path],
      })),
    ),
  });
  await game.run(readFileSync(new URL('systems/chat.luau', import.meta.url), 'utf8'));
  const type = async (player: string, text: string) => {
    const before = game.output.length;
    await game.run('local given = ... task.spawn(_G.hear, game:GetService("Players")[given[1]], given[2])', [
      player,
      text,
    ]);
    return vi.waitFor(() => game.output.slice(before).at(-1) ?? expect.fail('nothing is shown'), 20_000);
  };
  expect(await type('Officer', '/promote @Newcomer')).toContain('client Officer');
  expect(roblox.journal.writes()).toEqual([]);
  expect(await type('Staff', '/promote @Newcomer')).toMatch(/^client Staff newcomer.*is now Officer \(rank 20\)/i);
  expect(roblox.journal.writes(sampleUsers.trainee).length).toBeGreaterThan(0);
});
