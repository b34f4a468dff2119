import { expect, test } from 'vitest';
import { CliHome } from '../support/run-cli.ts';

interface Shown {
  v: number;
  workspace: { id: string; plan: string; active: boolean };
}

async function secretOf(home: CliHome, name: string): Promise<string> {
  return (await home.here(['key', 'create', name])).stdout.trim();
}

test.concurrent('a new workspace is active and on the top plan, and its id never changes', async () => {
  using home = new CliHome();
  const shown = await home.json<Shown>('workspace', 'show');
  expect(shown).toEqual({
    v: 1,
    workspace: {
      id: expect.stringMatching(/^ws_[0-9A-Za-z]{12,}$/),
      name: 'default',
      plan: 'top',
      active: true,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    },
  });
  expect(await home.json<Shown>('workspace', 'show')).toEqual(shown);
});

test.concurrent('suspending refuses every key at once; resuming accepts them again without confirmation', async () => {
  using home = new CliHome();
  const keys = [await secretOf(home, 'one'), await secretOf(home, 'two')];
  const verdicts = async () => {
    const results = await Promise.all(keys.map((input) => home.here(['key', 'verify', '-'], { input })));
    return results.map(({ code }) => code);
  };
  expect(await home.json<Shown>('workspace', 'suspend', '-y')).toMatchObject({ workspace: { active: false } });
  expect(await verdicts()).toEqual([5, 5]);
  expect(await home.json<Shown>('workspace', 'resume')).toMatchObject({ workspace: { active: true } });
  expect(await verdicts()).toEqual([0, 0]);
});

test.concurrent('off the top plan, every key is refused; returning to it needs no confirmation', async () => {
  using home = new CliHome();
  const input = await secretOf(home, 'game');
  const left = await home.here(['workspace', 'plan', 'free', '-y']);
  expect(left.code).toBe(0);
  expect(left.stderr).toContain('try: rankd workspace plan top');
  expect((await home.here(['key', 'verify', '-'], { input })).code).toBe(5);
  expect(await home.json<Shown>('workspace', 'plan', 'top')).toMatchObject({
    workspace: { plan: 'top', active: true },
  });
  expect((await home.here(['key', 'verify', '-'], { input })).code).toBe(0);
});

test.concurrent.each([
  ['suspending', ['suspend']],
  ['leaving the top plan', ['plan', 'free']],
])('%s asks first: without a terminal or -y, it exits with 2 and changes nothing', async (_what, args) => {
  using home = new CliHome();
  const before = await home.json<Shown>('workspace', 'show');
  const result = await home.here(['workspace', ...args], { input: 'y\n' });
  expect(result).toMatchObject({ code: 2, stdout: '' });
  expect(result.stderr).toMatch(/^error: [^\n]+\ntry: add -y, [^\n]+\n$/);
  expect(await home.json<Shown>('workspace', 'show')).toEqual(before);
});

test.concurrent('an unknown plan is a usage error', async () => {
  using home = new CliHome();
  const result = await home.here(['workspace', 'plan', 'gold', '-y', '--json']);
  expect(result).toMatchObject({ code: 2, stdout: '' });
  expect(result.json()).toMatchObject({
    v: 1,
    success: false,
    code: 'usage',
    message: expect.stringMatching(/top, free/),
  });
});

test.concurrent('commands that open a new data directory at the same time see one workspace', async () => {
  using home = new CliHome();
  const shown = await Promise.all([1, 2, 3].map(() => home.json<Shown>('workspace', 'show')));
  expect(new Set(shown.map(({ workspace }) => workspace.id)).size).toBe(1);
});
