import { expect, test } from 'vitest';
import { historyUndone, keyPaused, keyRevoked } from '../../../src/core/events.ts';
import { isAlarm, typeOf } from '../../../src/core/webhooks/event-types.ts';
import { embedOf, lineOf } from '../../../src/usecases/webhooks/discord.ts';
import { type EventView, eventBody } from '../../../src/usecases/webhooks/outbox.ts';

const actor = { by: 'daemon', at: Date.UTC(2026, 0, 1) };
const key = { id: 'key_8TqLx0vBz3Rw', name: 'points-game' };

function viewOf(event: ReturnType<typeof keyPaused>): EventView {
  const kept = { ...event, id: 7 };
  const type = typeOf({ event: kept });
  if (type === undefined) throw new Error('the event is not sent to webhooks');
  return { sequence: 7, type, event: kept };
}

test('an alarm about a paused key gives its name, its id and the command that resumes it', () => {
  const alarm = viewOf(keyPaused(key, 'it demoted too many', actor));
  const { description } = embedOf(alarm);
  for (const text of [key.id, 'points-game', 'it demoted too many', 'rankd key resume points-game'])
    expect(description.replaceAll('\\', '')).toContain(text);
  expect(lineOf(alarm)).toContain('points');
  const { data } = JSON.parse(eventBody(alarm, { workspaceId: 'ws_1', groupTitle: 'group 7 on x' }));
  expect(data).toMatchObject({ subject: key.id, detail: { name: 'points-game' }, try: 'rankd key resume points-game' });
});

test('a revoked key raises an alarm', () => {
  expect(isAlarm(viewOf(keyRevoked(key, {}, actor)).type)).toBe(true);
});

test('an undo is reported when it ends, with its result, the key and the time', () => {
  const about = { keyId: key.id, keyName: key.name, since: '2026-01-01T00:00:00Z', changes: 4, members: 4 };
  const result = 'of 4 members, 2 put back; 2 no longer in the group';
  const begun = historyUndone({ undoId: 'undo_1', does: 'begin' }, about, actor);
  expect(typeOf({ event: { ...begun, id: 1 } })).toBeUndefined();
  const { title, description } = embedOf(
    viewOf(historyUndone({ undoId: 'undo_1', does: 'end' }, { ...about, result }, actor)),
  );
  expect(title).toBe('Changes were undone');
  for (const text of [result, 'points-game', '2026-01-01']) expect(description.replaceAll('\\', '')).toContain(text);
});
