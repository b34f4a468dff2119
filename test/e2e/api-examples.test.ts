import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { isDescribed } from '../../src/http/route.ts';
import { routes } from '../../src/http/routes/all.ts';
import { forwardTo, Game } from '../game/game.ts';
import type { DaemonHere } from '../support/daemon-here.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';
import { blocksOf, documentedPort } from '../support/readme-commands.ts';
import { binary } from '../support/run-cli.ts';

const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');
const [, section = ''] = page.split('\n## Examples\n');
const [setUp = '', ...parts] = section.split(/^## /m)[0]?.split(/^### /m) ?? [];
const examples = parts.map((text) => ({
  operation: /^`(.+?)`/.exec(text)?.[1] ?? '',
  curl: blockIn(text, 'sh'),
  luau: blockIn(text, 'lua'),
  answer: blockIn(text, 'json'),
}));

let world: OpenCloudHome;
let daemon: DaemonHere;
beforeAll(async () => {
  world = await openCloudHome();
  daemon = await world.serve({ RANKD_GROUP_LADDER: 'Trainee,Officer,Captain' });
  await typed(blockIn(setUp, 'sh') ?? '');
});
afterAll(() => world[Symbol.asyncDispose]());

test('docs/api.md has an example of every operation, and one in Luau for requests that games send', () => {
  const described = routes.filter(isDescribed).map(({ method, path }) => `${method} ${path}`);
  expect(examples.map(({ operation }) => operation).toSorted()).toEqual(described.toSorted());
  for (const { operation, luau } of examples)
    expect([operation, luau !== undefined]).toEqual([operation, operation.startsWith('POST')]);
});

test.each(examples.filter(({ curl }) => curl !== undefined))(
  'the curl command in docs/api.md for $operation gets the response that the page shows',
  async ({ curl = '', answer }) => {
    const stdout = await typed(curl);
    if (answer !== undefined) expect(shapeOf(stdout)).toEqual(shapeOf(answer));
  },
);

test.each(examples.filter(({ luau }) => luau !== undefined))(
  'the Luau code in docs/api.md for $operation gets the response that the page shows',
  async ({ luau = '', answer = '' }) => {
    const secrets = { rankd: readFileSync(world.home.path('my-game.key'), 'utf8').trim() };
    await using game = await Game.start({ clock: systemClock, secrets, serve: forwardTo(daemon.url) });
    await game.run(luau);
    const [, status, body = ''] = /^print (\d+) (.+)$/.exec(game.output.join('\n')) ?? [];
    expect([status, shapeOf(body)]).toEqual(['200', shapeOf(answer)]);
  },
);

describe('docs/examples.md', () => {
  beforeAll(() => typed(blocksOf('docs/examples.md', 'sh').join('\n')));
  const python = spawnSync('python3', ['--version']);

  test('has JavaScript that gives a member a rank', () => runs('js', `'${process.execPath}' --input-type=module`));
  test.skipIf(python.error !== undefined)('has Python that gives a member a rank', () => runs('python', 'python3 -'));

  async function runs(language: string, interpreter: string): Promise<void> {
    const [program = ''] = blocksOf('docs/examples.md', language);
    expect(await typed(`${interpreter} <<'END'\n${program}END`)).toMatch(/\b1001\b.* Officer/);
  }
});

test('the /docs page lists every operation, and its requests for a shell and for a game succeed', async () => {
  const html = await (await fetch(`${daemon.url}/docs`)).text();
  const shown = html.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
  const requests = [...shown.matchAll(/<pre>((?:curl|local) .+?)<\/pre>/gs)].map(([, text = '']) => text);
  for (const { method, path } of routes.filter(isDescribed)) {
    expect(shown).toContain(`<a href="#${method.toLowerCase()}${path.replaceAll('/', '-')}">`);
    const mine = requests.filter((text) => new RegExp(`(7265|example\\.com)${path}['?"]`).test(text));
    expect([path, mine.length]).toEqual([path, method === 'POST' ? 2 : 0]);
  }
  const secrets = { rankd: readFileSync(world.home.path('my-game.key'), 'utf8').trim() };
  const inOrder = Object.values(
    Object.groupBy(requests, (text) => (text.startsWith('curl') ? 'shell' : 'game')),
  ).flat();
  for (const request of inOrder) {
    if (request.startsWith('curl')) {
      expect(await typed(`${request} -f`)).toMatch(/^(\{"success":true|"ws_)/);
      continue;
    }
    await using game = await Game.start({ clock: systemClock, secrets, serve: forwardTo(daemon.url) });
    await game.run(request);
    expect(game.output.join('\n')).toMatch(/^print 200 /);
  }
});

async function typed(script: string): Promise<string> {
  const { code, stdout, stderr } = await world.home.shell(
    `set -eu\n${script}`
      .replaceAll(/^rankd /gm, `'${process.execPath}' '${binary}' `)
      .replaceAll(`http://127.0.0.1:${documentedPort}`, daemon.url),
  );
  expect([code, stdout + stderr]).toEqual([0, expect.anything()]);
  return stdout;
}

function blockIn(text: string, language: string): string | undefined {
  return new RegExp(`^\`\`\`${language}\\n(.+?)^\`\`\``, 'ms').exec(text)?.[1];
}

function shapeOf(json: string): unknown {
  const answer: unknown = JSON.parse(json);
  if (typeof answer !== 'object' || answer === null) return typeof answer;
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [name, ['success', 'status'].includes(name) ? value : typeof value]),
  );
}
