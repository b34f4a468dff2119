import { expect, test } from 'vitest';
import { CliHome } from '../support/run-cli.ts';

interface Events {
  v: number;
  events: Array<{
    id: number;
    at: string;
    by: string;
    action: string;
    subject: string;
    detail: Record<string, unknown>;
  }>;
}

test('everything an operator does is listed newest first, with who did it and without a secret', async () => {
  using home = new CliHome();
  const { secret, key } = await home.json<{ secret: string; key: { id: string } }>('key', 'create', 'game');
  await home.run(['whitelist', 'add', '42', '--note', 'lobby']);
  await home.run(['whitelist', 'disable', '42']);
  await home.run(['workspace', 'suspend', '-y']);

  const { v, events } = await home.json<Events>('audit', 'list');
  expect(v).toBe(1);
  expect(events.map(({ action }) => action)).toEqual([
    'workspace.suspend',
    'whitelist.disable',
    'whitelist.add',
    'key.create',
  ]);
  expect(events[2]).toEqual({
    id: expect.any(Number),
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    by: expect.stringMatching(/^cli:.+@.+$/),
    action: 'whitelist.add',
    subject: '42',
    detail: { keyId: key.id, note: 'lobby', added: true },
  });
  expect(JSON.stringify(events)).not.toContain(secret);
});

test('the list can be cut by number and by age', async () => {
  using home = new CliHome();
  await home.run(['key', 'create', 'game']);
  await home.run(['whitelist', 'add', '1', '2', '3']);
  const newest = await home.run(['audit', 'list', '--limit', '2']);
  expect(newest.stdout.trimEnd().split('\n')).toHaveLength(3); // heading and two rows
  expect(newest.stderr).toContain('--limit');
  expect((await home.json<Events>('audit', 'list', '--since', '1h')).events).toHaveLength(4);
  expect(await home.json('audit', 'list', '--since', '0s')).toEqual({ v: 1, events: [] });
  expect((await home.run(['audit', 'list', '--since', 'yesterday'])).code).toBe(2);
});
