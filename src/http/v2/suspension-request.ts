import * as z from 'zod';
import { parseDuration } from '../../base/time.ts';
import { parseBody, text } from '../rank-request.ts';
import { type Asked, fields, notAnObject, toAsked } from './change-request.ts';
import { namesOneMember } from './member-query.ts';

const durationError = ({ input }: { input?: unknown }) =>
  input === undefined ? 'is missing' : 'must be a duration such as 3d, 12h or 30m, or a number of whole seconds';

const duration = z
  .union(
    [z.int({ error: durationError }), text.refine((given) => msOf(given) !== undefined, { error: durationError })],
    {
      error: durationError,
    },
  )
  .describe('For how long: 3d, 12h or 30m, or whole seconds.');

/** The body of POST /v2/suspend. Unknown fields are ignored. */
export const suspendBody = z.object({ ...fields, duration }, notAnObject).superRefine(namesOneMember);

export function parseSuspend(json: unknown): Asked & { forMs: number } {
  const { duration: given, ...body } = parseBody(suspendBody, json);
  return { ...toAsked(body, 0), forMs: msOf(given) ?? 0 };
}

/** Digits are seconds, as a number is. */
function msOf(given: string | number): number | undefined {
  const ms = /^\d+$/.test(String(given)) ? Number(given) * 1_000 : parseDuration(String(given));
  return ms !== undefined && Number.isSafeInteger(ms) ? ms : undefined;
}
