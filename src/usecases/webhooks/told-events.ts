import { isoTime } from '../../base/time.ts';
import { groupIdIn, isSimulatedGroup } from '../../core/group-title.ts';
import { fixOf, type OutboxEvent, typeOf, type WebhookEventType } from '../../core/webhooks/event-types.ts';
import { changeAt, moveOf } from '../../core/webhooks/told-change.ts';
import type { Ports } from '../../ports/index.ts';
import { detailedChangeDocument } from '../history/change-document.ts';
import { type ChangeView, withNames } from '../history/history.ts';

/** An event as webhooks get it. */
export interface EventView {
  sequence: number;
  type: WebhookEventType;
  event: OutboxEvent['event'];
  /** The change behind it, as it was at that time. */
  told?: ChangeView;
}

/** Adds names to events, and leaves out events that are not for webhooks. */
export async function viewEvents(
  ports: Pick<Ports, 'store' | 'clock'>,
  events: readonly OutboxEvent[],
): Promise<EventView[]> {
  const changes = events.flatMap(({ event, change }) => (change === undefined ? [] : [changeAt(event, change)]));
  const named = changes.length === 0 ? [] : await withNames(ports, changes);
  const found = [...named];
  return events.flatMap((one) => {
    const told = one.change === undefined ? undefined : found.shift();
    const type = typeOf(one);
    if (type === undefined) return [];
    return [{ sequence: one.event.id, type, event: one.event, ...(told !== undefined && { told }) }];
  });
}

/** The body of an event for programs. `groupTitle` is the daemon's, for events that are not about a change. */
export function eventBody(
  { sequence, type, event, told }: EventView,
  { workspaceId, groupTitle }: { workspaceId: string; groupTitle: string },
): string {
  const title = told?.change.group ?? groupTitle;
  const data = {
    sequence,
    workspaceId,
    groupId: groupIdIn(title) ?? null,
    ...(isSimulatedGroup(title) && { simulated: true }),
    ...(told === undefined ? aboutNoChange({ type, event }) : aboutChange(told, type)),
  };
  return JSON.stringify({ type, timestamp: isoTime(event.at), data });
}

function aboutNoChange(told: Pick<EventView, 'type' | 'event'>) {
  const { by, subject, detail } = told.event;
  const fix = fixOf(told.type, told.event);
  return { by, subject, detail, ...(fix !== undefined && { try: fix }) };
}

function aboutChange(told: ChangeView, type: WebhookEventType) {
  const { undoOf, hold } = told.change;
  return {
    ...(type === 'rank.changed' && { direction: moveOf(told.change) }),
    ...(undoOf !== undefined && { undoOf }),
    ...(hold !== undefined && { suspensionId: hold.id }),
    change: withShortLists(detailedChangeDocument(told)),
  };
}

const maxListed = 100;

/** Shortens lists, because receivers would refuse the event of a member with thousands of roles. */
function withShortLists(document: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(document).flatMap(([name, value]) => {
      if (!Array.isArray(value) || value.length <= maxListed) return [[name, value]];
      return [
        [name, value.slice(0, maxListed)],
        [`${name}Count`, value.length],
      ];
    }),
  );
}
