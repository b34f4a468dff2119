import type { IncomingHttpHeaders } from 'node:http';
import * as z from 'zod';
import { RankdError, type RefusalReason } from '../../base/errors.ts';
import { crypto } from '../../base/node-modules.ts';
import { receiveErasure } from '../../usecases/history/forget.ts';
import { refuse } from '../callers.ts';
import { memberId, notAnObject, parseFields } from '../fields.ts';
import { jsonBody } from '../request-body.ts';
import { type Exchange, route } from '../route.ts';

/**
 * Receives notifications from a Roblox webhook. Roblox sends each one up to 5 times with the same `NotificationId`,
 * until it receives a 2xx within 5 s. Source: "Webhook notifications" in Roblox's creator documentation.
 */
export const robloxWebhook = route({
  method: 'POST',
  path: '/roblox/webhook',
  isServed: ({ erasureSecret }) => erasureSecret !== undefined,
  handler: receive,
});

const printable = /^[ -~]+$/;
const notification = z.object(
  {
    NotificationId: z.string({ error: 'is missing' }).min(1).max(256).regex(printable, { error: 'is not an id' }),
    EventType: z.string({ error: 'is missing' }).max(64).regex(printable, { error: 'is not a name' }),
  },
  notAnObject,
);
const erasure = z.object({
  EventTime: z.unknown().optional(),
  EventPayload: z.object({ UserId: memberId }, { error: 'is missing' }),
});

async function receive(exchange: Exchange): Promise<{ success: true; message: string; requestId: string }> {
  const { app, request } = exchange;
  const { erasureSecret } = app;
  // A reload can disable the route after the request has begun.
  if (erasureSecret === undefined) throw new RankdError('not_found', 'This address does not exist.');
  const refusal = refusalOfSignature(request, { secret: erasureSecret.reveal(), now: app.clock.now() });
  if (refusal !== undefined) throw refuse(exchange, refusal);
  const body = jsonBody(request);
  const { NotificationId: id, EventType: type } = parseFields(notification, body);
  request.notes.facts = { notification: id, type }; // not the user id, which would stay in the log
  return { success: true, message: await outcomeOf(exchange, { id, type, body }), requestId: request.id };
}

async function outcomeOf(
  { app }: Exchange,
  { id, type, body }: { id: string; type: string; body: unknown },
): Promise<string> {
  if (type === 'SampleNotification') return 'rankd received the test notification, and its signature is correct.';
  if (type !== 'RightToErasureRequest') return 'rankd ignores notifications of this type.';
  const { EventTime: at, EventPayload: payload } = parseFields(erasure, body);
  const requestedAt = typeof at === 'string' ? Date.parse(at) : Number.NaN;
  const { doneAt } = await receiveErasure(app, { id, userId: payload.UserId, requestedAt });
  return doneAt === undefined
    ? 'rankd recorded the request; the operator carries it out with rankd forget --requested.'
    : 'The request is done: rankd has no record that names the user.';
}

/** The tolerance for a signature's timestamp, as recommended in Roblox's documentation. */
const maxSkewMs = 10 * 60_000;

/**
 * Checks the header `t=SECONDS,v1=BASE64`, in which `v1` is the HMAC-SHA256 of the time, a dot and the body. Roblox
 * sends no signature if the webhook has no secret.
 */
function refusalOfSignature(
  { headers, body }: { headers: IncomingHttpHeaders; body: unknown },
  { secret, now }: { secret: string; now: number },
): RankdError | undefined {
  const header = String(headers['roblox-signature'] ?? '');
  const [, time] = /(?:^|,)\s*t=(\d{1,12})\s*(?:,|$)/.exec(header) ?? [];
  const [, given] = /(?:^|,)\s*v1=([\w+/=-]+)\s*(?:,|$)/.exec(header) ?? [];
  if (time === undefined || given === undefined) return refusals.unsigned;
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
  const expected = crypto().createHmac('sha256', secret).update(`${time}.`).update(bytes).digest();
  const signature = Buffer.from(given, 'base64');
  if (signature.length !== expected.length || !crypto().timingSafeEqual(signature, expected))
    return refusals.wrong_secret;
  return Math.abs(now - Number(time) * 1_000) > maxSkewMs ? refusals.stale_notification : undefined;
}

/** Created once and shared, because anyone can cause thousands of these refusals. */
const refusals = {
  unsigned: refusal(
    'unsigned',
    'The roblox-signature header contains no signature: set a secret for the webhook on the Creator Dashboard.',
  ),
  wrong_secret: refusal(
    'wrong_secret',
    'The signature in roblox-signature does not match the body: the Creator Dashboard and rankd need the same secret.',
  ),
  stale_notification: refusal('stale_notification', 'The notification was not signed in the last 10 minutes.'),
};

function refusal(reason: RefusalReason, message: string): RankdError {
  return RankdError.withoutStack('invalid_key', message, { details: { reason } });
}
