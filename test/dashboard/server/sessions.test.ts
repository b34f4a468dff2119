import { expect, test } from 'vitest';
import { Sessions, usualKind } from '../../../src/dashboard/server/sessions.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

function open() {
  const clock = new ManualClock();
  const sessions = new Sessions(clock);
  const logIn = () => sessions.begin({ ...usualKind, by: 'web:ann@host' });
  return { clock, sessions, logIn };
}

test('a session lasts twelve hours', async () => {
  const { clock, sessions, logIn } = open();
  const { cookie, session } = logIn();
  await clock.advance(12 * hourMs - 1);
  expect(sessions.find(cookie)).toBe(session);
  await clock.advance(1);
  expect(sessions.find(cookie)).toBeUndefined();
  expect(sessions.count).toBe(0);
});

test('a request that changes something needs activity on the page within the last half hour', async () => {
  const { clock, sessions, logIn } = open();
  const { cookie, session } = logIn();
  await clock.advance(30 * minuteMs - 1);
  expect(sessions.mayChange(session)).toBe(true);
  sessions.touch(session);
  await clock.advance(30 * minuteMs - 1);
  expect(sessions.mayChange(session)).toBe(true);
  await clock.advance(1);
  expect(sessions.mayChange(session)).toBe(false);
  expect(sessions.find(cookie)).toBe(session);
});

test('one session’s token is not valid for another session', () => {
  const { sessions, logIn } = open();
  const [one, other] = [logIn(), logIn()];
  expect(sessions.isToken(one.session, one.token)).toBe(true);
  for (const token of [other.token, one.cookie, '', undefined])
    expect(sessions.isToken(one.session, token)).toBe(false);
});

test('a logged-out page is notified at once', () => {
  const { sessions, logIn } = open();
  const [one, other] = [logIn(), logIn()];
  const ended: string[] = [];
  sessions.whenEnded(one.session, () => ended.push('one'));
  sessions.whenEnded(other.session, () => ended.push('other'));
  sessions.logOut(one.session);
  expect(ended).toEqual(['one']);
  expect(sessions.logAllOut()).toBe(1);
  expect(ended).toEqual(['one', 'other']);
  expect(sessions.find(other.cookie)).toBeUndefined();
});

test('the number of sessions is limited: a new one replaces the oldest', () => {
  const { sessions, logIn } = open();
  const first = logIn();
  const ended: string[] = [];
  sessions.whenEnded(first.session, () => ended.push('first'));
  for (let n = 0; n < 100; n += 1) logIn();
  expect(sessions.count).toBe(100);
  expect(sessions.find(first.cookie)).toBeUndefined();
  expect(ended).toEqual(['first']);
});
