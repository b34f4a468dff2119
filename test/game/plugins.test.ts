import { describe, expect, test } from 'vitest';
import { applied } from './scene.ts';
import { openSystem, systems } from './systems.ts';

describe.each(systems)('$name', (system) => {
  test('takes every command to rankd and tells the caller what rankd said', async () => {
    await using scene = await openSystem(system, { serve: (request) => applied(request) });
    const type = async (kind: Parameters<typeof system.typed>[0], rest: string) => {
      const told = await scene.type('Bob', `${system.typed(kind)} ${rest}`);
      await scene.run('task.wait(2) return true');
      return told;
    };
    expect(scene.game.output).toEqual([]);
    expect(await type('promote', 'ann passed the quiz')).toMatch(/1001 is Officer\.$/);
    await type('demote', 'Cid');
    await type('setrank', 'ann SeniorOfficer well done');
    await type('setrank', 'ann 20');
    await type('suspend', 'cid 3d rude');
    await type('unsuspend', 'cid');
    const bob = { rankerId: 1002, rankerName: 'Bob' };
    const ann = { robloxUserId: 1001, rankeeName: 'Ann', ...bob };
    const cid = { robloxUserId: 1003, rankeeName: 'Cid', ...bob };
    const anyCase = (text: string) => expect.stringMatching(new RegExp(`^${text}$`, 'i'));
    const command = expect.stringMatching(/^\w[\w ]+: \w+$/);
    expect(scene.asked).toEqual([
      { path: '/v2/promote', ...ann, reason: 'passed the quiz', command },
      { path: '/v2/demote', ...cid, command },
      { path: '/v2/rank', ...ann, rank: anyCase('SeniorOfficer'), reason: 'well done', command },
      { path: '/v2/rank', ...ann, rank: 20, command },
      { path: '/v2/suspend', ...cid, duration: 259_200, reason: 'rude', command },
      { path: '/v2/unsuspend', ...cid, command },
    ]);
  });
});
