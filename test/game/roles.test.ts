import { expect, test } from 'vitest';
import { applied, openScene } from './scene.ts';

test.each([
  ['rankd:addRole({ rankee = 1001, role = "VIP" })', 'add', 'VIP'],
  ['rankd:removeRole({ rankee = 1001, role = " 15 " })', 'remove', 15],
])('%s requests that extra role', async (call, operation, role) => {
  await using scene = await openScene({ serve: (request) => applied(request) });
  expect(await scene.run(`return ${call}`)).toMatchObject({ ok: true });
  const [{ url = '', body = '' } = {}] = scene.game.requests;
  expect(url).toBe(`https://rankd.example.com/v2/roles/${operation}?placeid=1`);
  expect(JSON.parse(body)).toEqual({ robloxUserId: 1001, rankeeName: 'Ann', role });
});

test('a missing role, or a role together with ifRank, is refused before any request', async () => {
  await using scene = await openScene({ serve: (request) => applied(request) });
  const codes = `return {
    rankd:addRole({ rankee = 1001 }).code,
    rankd:removeRole({ rankee = 1001, role = "VIP", ifRank = 5 }).code,
  }`;
  expect(await scene.run(codes)).toEqual(['invalid_argument', 'invalid_argument']);
  expect(scene.game.requests).toEqual([]);
});
