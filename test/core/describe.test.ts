import { expect, test } from 'vitest';
import { memberTitle, restoredMessage, roleTitle, successMessage } from '../../src/core/describe.ts';
import type { RankRequest, Role, RoleKind } from '../../src/core/model.ts';
import { restorePlan, rolePlan } from '../../src/core/role-plan.ts';
import type { RoleScheme } from '../../src/core/role-scheme.ts';
import { newChange } from '../contracts/store/samples.ts';

const named = (name: string, rank: number, kind: RoleKind = 'custom'): Role => ({ id: nextId++, name, rank, kind });
let nextId = 1_000;
const member = named('Member', 1, 'base');
const trainee = named('Trainee', 10);
const helper = named('Helper', 10);
const officer = named('Officer', 20);
const vip = named('VIP', 20);
const patron = named('Patron', 90);
const muted = named('Muted', 1);
const roles = [member, muted, trainee, helper, officer, vip, patron];
const request: RankRequest = { rankerName: '', rankerId: 0, rankeeName: 'Bob', rankeeId: 7, newRankId: 0 };

function described(held: Role[], target: Role, ladder?: Role[]): string {
  const scheme: RoleScheme = { roles, ladder, rankOne: 'custom' };
  const plan = rolePlan(scheme, { userId: 7, roleIds: held.map(({ id }) => id) }, target);
  return successMessage(request, plan);
}

test('the message names the previous role, not another role of the same rank', () => {
  expect(described([trainee], officer)).toBe('Bob (7) is now Officer (rank 20), was Trainee (rank 10).');
  expect(described([helper], officer)).toBe('Bob (7) is now Officer (rank 20), was Helper (rank 10).');
  expect(described([], officer)).toBe('Bob (7) is now Officer (rank 20), was Member (rank 1).');
  expect(described([muted], officer)).toBe('Bob (7) is now Officer (rank 20), was Muted (rank 1).');
});

test('with a ladder, the message names the previous role on the ladder, whatever other roles the member holds', () => {
  const ladder = [trainee, officer];
  expect(described([trainee, patron], officer, ladder)).toBe(
    'Bob (7) is now Officer (rank 20), was Trainee (rank 10).',
  );
  expect(described([patron], officer, ladder)).toBe('Bob (7) is now Officer (rank 20), was Member (rank 1).');
  expect(described([trainee, helper], officer, ladder)).toBe(
    'Bob (7) is now Officer (rank 20), was Trainee (rank 10).',
  );
});

test('the message for a member who already has the rank reports the removal of lower ladder roles', () => {
  const still = "Bob (7) is still Officer (rank 20), without the ladder's lower roles.";
  expect(described([trainee, officer], officer, [trainee, officer])).toBe(still);
  expect(described([trainee, officer, vip], officer, [trainee, officer])).toBe(still);
  expect(described([officer], officer, [trainee, officer])).toBe('Bob (7) is already Officer (rank 20).');
});

test('the message names a removed role of the same rank', () => {
  expect(described([muted], member)).toBe('Bob (7) is now Member (rank 1), was Muted (rank 1).');
  expect(described([vip], officer)).toBe('Bob (7) is now Officer (rank 20), was VIP (rank 20).');
});

test('the message of an undo names the restored roles, highest first, and the later changes that it reverted', () => {
  const scheme: RoleScheme = { roles, ladder: undefined, rankOne: 'custom' };
  const plan = restorePlan(scheme, { userId: 7, roleIds: [officer.id] }, [trainee.id, patron.id]);
  const held = 'Bob (7) holds Patron (rank 90), Trainee (rank 10), Member (rank 1) again.';
  expect(restoredMessage(request, { scheme, plan, between: [] })).toBe(held);
  const between = [newChange({ id: 'chg_b' }), newChange({ id: 'chg_a' })];
  expect(restoredMessage(request, { scheme, plan, between })).toBe(
    `${held} This also undoes chg_b, chg_a, made in between.`,
  );
});

test('a name of up to 40 characters is shown in full; a longer one is cut to 40', () => {
  const title = (length: number) => memberTitle({ rankeeName: 'x'.repeat(length), rankeeId: 7 });
  expect(title(40)).toBe(`${'x'.repeat(40)} (7)`);
  expect(title(41)).toBe(`${'x'.repeat(39)}… (7)`);
  expect(roleTitle({ name: '👑'.repeat(41), rank: 5 })).toBe(`${'👑'.repeat(39)}… (rank 5)`);
});
