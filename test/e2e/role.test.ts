import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CliHome } from '../support/run-cli.ts';

interface Listed {
  changes: Array<{ id: string; kind: string | null; state: string; rolesAfter: number[]; reason: string | null }>;
}

interface Shown {
  suspension: { state: string; rolesBefore: number[]; rolesDuring: number[] };
}

const [member, trainee, officer, captain, base] = ['1001', 70_010, 70_020, 8_589_934_642, 12_884_901_889];

function withLadder(): CliHome {
  const home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), 'group: {ladder: [10, 20]}\nplatform: {kind: simulated}\n');
  return home;
}

async function held(home: CliHome): Promise<number[]> {
  const { member: shown } = await home.json<{ member: { roles: Array<{ id: number }> } }>('rank', 'show', member);
  return shown.roles.map(({ id }) => id).sort((a, b) => a - b);
}

test.concurrent('role add and remove change one role, which the history shows and an undo restores', async () => {
  using home = withLadder();
  expect((await home.here(['role', 'add', member, 'captain', '--reason', 'gamepass'])).stdout).toBe(
    'Member 1001 now also holds Captain (rank 50).\n',
  );
  const [change] = (await home.json<Listed>('history', 'list')).changes;
  expect(change).toMatchObject({ kind: 'role_added', reason: 'gamepass', rolesAfter: [trainee, captain, base] });
  expect((await home.here(['history', 'list'])).stdout).toMatch(/\+ Captain/);
  expect((await home.here(['history', 'undo', String(change?.id), '-y'])).code).toBe(0);
  expect(await held(home)).toEqual([trainee, base]);
  expect(await home.here(['role', 'remove', member, 'Officer'])).toMatchObject({
    code: 5,
    stderr: expect.stringContaining('"Officer" is a rank of the ladder'),
  });
  writeFileSync(home.path('buyers'), `${member}\n1002\n4242\n`);
  const listed = await home.here(['role', 'add', '50', '--file', home.path('buyers'), '-y']);
  expect(listed).toMatchObject({ code: 5, stdout: expect.stringMatching(/of 3 members, 2 changed; 1 refused/) });
  expect(await held(home)).toEqual([trainee, captain, base]);
  writeFileSync(home.path('buyers'), `${member}\n`);
  const summaryOf = async (verb: string, file: string) =>
    (await home.here(['role', verb, '50', '--file', home.path(file), '-y'])).stdout;
  expect(await summaryOf('add', 'buyers')).toMatch(/of 1 member, 1 already had the role\.\n$/);
  expect(await summaryOf('remove', 'buyers')).toMatch(/of 1 member, 1 changed\.\n$/);
  writeFileSync(home.path('again'), `${member}\n1003\n`);
  expect(await summaryOf('remove', 'again')).toMatch(/of 2 members, 1 changed; 1 did not have the role\.\n$/);
});

test.concurrent('the end of a temporary role does not revert a rank change made in the meantime', async () => {
  using home = withLadder();
  expect((await home.here(['role', 'add', member, 'Captain', '--for', '7d'])).stdout).toMatch(
    /^Member 1001 now also holds Captain \(rank 50\), until \d{4}-/,
  );
  expect((await home.here(['rank', 'set', member, '20'])).code).toBe(0);
  expect((await home.json<Shown>('suspension', 'show', member)).suspension).toMatchObject({
    ...{ state: 'active', rolesBefore: [officer, base], rolesDuring: [officer, captain, base] },
  });
  expect((await home.here(['history', 'undo', '--last', '--user', member, '-y'])).code).toBe(0);
  expect((await home.json<Shown>('suspension', 'show', member)).suspension).toMatchObject({
    ...{ state: 'active', rolesBefore: [trainee, base], rolesDuring: [trainee, captain, base] },
  });
  expect(await home.here(['role', 'add', member, 'Recruit', '--for', '1d'])).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('A member can have only one temporary rank or role at a time.'),
  });
  expect((await home.here(['rank', 'set', member, '20'])).code).toBe(0);
  expect((await home.here(['rank', 'unsuspend', member])).code).toBe(0);
  expect(await held(home)).toEqual([officer, base]);
});

test.concurrent('a temporary rank outlives a role that the member gets or loses in the meantime', async () => {
  using home = withLadder();
  await home.json('rank', 'set', member, '20', '--for', '7d');
  await home.json('role', 'add', member, 'Captain');
  await home.json('rank', 'unsuspend', member);
  expect(await held(home)).toEqual([trainee, captain, base]);
  await home.json('rank', 'set', member, '20', '--for', '7d');
  await home.json('role', 'remove', member, 'Captain');
  await home.json('rank', 'unsuspend', member);
  expect(await held(home)).toEqual([trainee, base]);
});
