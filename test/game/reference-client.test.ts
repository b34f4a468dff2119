import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openTestApp, place, roles, type TestApp } from '../support/open-test-app.ts';
import { platformWith } from '../support/platform-with.ts';
import { forwardTo, Game, type GameRequest } from './game.ts';

/**
 * A /v1 client like those in existing games. It finds the next rank in cached roles, makes up to three attempts if a
 * request raises or the status is 500 or higher, decodes every body, and treats only 200 as success.
 */
const referenceClient = `
local given = ...
local HttpService = game:GetService("HttpService")
local Players = game:GetService("Players")
local roles = {
  { Name = "Guest", Rank = 0 }, { Name = "Member", Rank = 1 }, { Name = "Trainee", Rank = 10 }, { Name = "Officer", Rank = 20 },
  { Name = "Captain", Rank = 50 }, { Name = "Admin", Rank = 200 }, { Name = "Owner", Rank = 255 },
}
local function ask(path, body, headers)
  local isAnswered, response
  for _ = 1, 3 do
    isAnswered, response = pcall(HttpService.RequestAsync, HttpService, {
      Url = "https://rankd.example.com" .. path,
      Method = "POST",
      Headers = headers or { ["Content-Type"] = "application/json", Authorization = "Bearer " .. given.key },
      Body = HttpService:JSONEncode(body),
    })
    if isAnswered and response.StatusCode < 500 then
      break
    end
  end
  if not isAnswered then
    return { outcome = "Failed (" .. response .. ")" }
  end
  local told = HttpService:JSONDecode(response.Body)
  local reason = if type(told) == "table" then told.error or told.message else nil
  local outcome = if response.StatusCode == 200 then "Success" else "Failed (" .. reason .. ")"
  return { outcome = outcome, status = response.StatusCode, body = response.Body }
end
local function change(ranker, rankee, step, cached)
  local index = 1
  for at, role in roles do
    index = if role.Rank <= cached then at else index
  end
  if ranker == rankee then
    return { outcome = "Skipped (Cannot promote self)" }
  elseif roles[index + step] == nil then
    return { outcome = "Already at highest rank" }
  end
  return ask("/v1/ranker?placeid=" .. game.PlaceId, {
    rankerName = if ranker then ranker.Name else "Unknown",
    rankerId = if ranker then ranker.UserId else 0,
    rankeeName = rankee.Name,
    rankeeId = rankee.UserId,
    newRankId = roles[index + step].Rank,
    command = if step > 0 then "Promote" else "Demote",
    oldRankName = roles[index].Name,
    prefix = ":",
    webhookUrl = "",
  })
end
local Ann, Bob = Players.Ann, Players.Bob
`;

interface Seen {
  outcome: string;
  status: number;
  body: string;
}

let app: TestApp;
let key: string;
beforeAll(async () => {
  app = await openTestApp();
  key = await app.createKey();
});
afterAll(() => app.close());

/** Runs a game script with the client. Each error in `raises` replaces one of the first responses. */
async function play<T = Seen>(script: string, { on = app, raises = [] as string[], asked = [] as GameRequest[] } = {}) {
  await using game = await Game.start({
    clock: systemClock,
    placeId: place,
    players: [
      { id: 1001, name: 'Ann' },
      { id: 1003, name: 'Bob' },
    ],
    serve: async (request) => {
      const answer = await forwardTo(on.url)(request);
      asked.push(request);
      const raise = raises[asked.length - 1];
      return raise === undefined ? answer : { raise };
    },
  });
  return await game.run<T>(`${referenceClient}\n${script}`, { key: on === app ? key : await on.createKey() });
}

test('a promotion or demotion gets exactly the four fields of the specification, and impossible steps are not sent', async () => {
  const asked: GameRequest[] = [];
  const seen = await play<Seen[]>(
    `return {
      change(Bob, Ann, 1, 10), change(Bob, Ann, 1, 20), change(nil, Ann, -1, 50), change(Bob, Bob, 1, 200), change(Bob, Ann, 1, 255),
    }`,
    { asked },
  );
  expect(seen.map(({ outcome }) => outcome)).toEqual([
    ...['Success', 'Success', 'Success', 'Skipped (Cannot promote self)', 'Already at highest rank'],
  ]);
  const bodies = seen.slice(0, 3).map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  expect(bodies).toEqual(
    [20, 50, 20].map((newRankId) => ({
      success: true,
      message: expect.stringMatching(/\w \w/),
      rankeeId: 1001,
      newRankId,
    })),
  );
  expect(asked).toHaveLength(3);
  expect(await app.heldBy(1001)).toContain(roles.officer);
});

test('a rank based on a stale cache is given as requested, because /v1 takes the new rank from the client', async () => {
  await play(`return change(Bob, Ann, 1, 10)`);
  const again = await play(`return change(Bob, Ann, 1, 10)`);
  expect(JSON.parse(again.body)).toMatchObject({ success: true, newRankId: 20 });
  expect(await app.heldBy(1001)).toContain(roles.officer);
});

test('the key is verified with a bare JSON string, and refused with the messages and statuses of the specification', async () => {
  const good = await play(`return ask("/v1/apikey", { placeid = game.PlaceId })`);
  expect([good.status, good.body]).toEqual([200, JSON.stringify((await app.store.getWorkspace()).id)]);
  const seen = await play<Seen[]>(`return {
    ask("/v1/apikey", { other = 1 }),
    ask("/v1/apikey", { placeid = game.PlaceId }, { ["Content-Type"] = "application/json" }),
    ask("/v1/apikey", { placeid = game.PlaceId }, { Authorization = given.key }),
    ask("/v1/apikey", { placeid = game.PlaceId }, { Authorization = "Bearer " .. given.key .. "x" }),
    ask("/v1/apikey", { placeid = 43 }),
  }`);
  expect(seen.map(({ status, outcome }) => `${status} ${outcome}`)).toEqual([
    '400 Failed (Missing placeid)',
    '401 Failed (Missing or invalid Authorization header)',
    '401 Failed (Missing or invalid Authorization header)',
    '401 Failed (Invalid API Key)',
    '403 Failed (Place not whitelisted)',
  ]);
  for (const { body } of seen) {
    expect(JSON.parse(body)).toMatchObject({ success: false, error: expect.any(String), message: expect.any(String) });
  }
});

test('a change that is repeated without an Idempotency-Key after a lost response is made once', async () => {
  let writes = 0;
  await using counted = await openTestApp({
    platform: (group) =>
      platformWith(group, {
        assignRole: (...given) => {
          writes += 1;
          return group.assignRole(...given);
        },
      }),
  });
  const asked: GameRequest[] = [];
  const lost = ['HttpError: NetFail', 'HttpError: Timedout'];
  const seen = await play(`return change(Bob, Ann, 1, 10)`, { on: counted, raises: lost, asked });
  expect([seen.outcome, asked.length, writes]).toEqual(['Success', 3, 1]);
  expect(await counted.heldBy(1001)).toContain(roles.officer);
});

test('promoting a team sends a burst of requests, each of which changes one member', async () => {
  const burst = await play<Seen[]>(`
    local members, seen, left = { 1001, 1002, 1004, 1005 }, {}, 4
    for index, id in members do
      task.spawn(function()
        seen[index] = change(Bob, { UserId = id, Name = "Cadet" .. id }, 1, 20)
        left -= 1
      end)
    end
    while left > 0 do task.wait(0.05) end
    return seen`);
  expect(burst.map(({ outcome }) => outcome)).toEqual(Array(4).fill('Success'));
  for (const id of [1001, 1002, 1004, 1005]) expect(await app.heldBy(id)).toContain(roles.captain);
});
