import { expect } from 'vitest';
import type { Answer } from './send.ts';

/** Returns the body of a request to promote member 1001 of the simulated group to Officer. `rest` overrides fields. */
export function rankBody(rest: Record<string, unknown> = {}): Record<string, unknown> {
  return { rankerName: 'Ann', rankerId: 0, rankeeName: 'Bob', rankeeId: 1001, newRankId: 20, ...rest };
}

export interface ExpectedError {
  status: number;
  code: string;
  error: string;
  /** True if the response must contain `retryAfter`. By default, it must not. */
  waits?: boolean;
}

export function expectError(answer: Answer, { status, code, error, waits = false }: ExpectedError): void {
  const { requestId, retryAfter } = answer.json as { requestId: string; retryAfter?: number };
  expect(answer.json).toEqual({
    success: false,
    error,
    code,
    message: expect.stringMatching(/^\S.*[.:)\d\w-]$/su),
    requestId: expect.stringMatching(/^req_\w+$/),
    ...(waits && { retryAfter: expect.any(Number) }),
  });
  expect(answer.status).toBe(status);
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(answer.headers['x-request-id']).toBe(requestId);
  expect(answer.headers['retry-after']).toBe(waits ? String(retryAfter) : undefined);
  if (waits) expect(retryAfter).toSatisfy((seconds) => Number.isInteger(seconds) && Number(seconds) >= 1);
  expect(Buffer.byteLength(answer.text)).toBeLessThan(2048);
}

/** Returns the code of an error response, or `undefined` for any other response. */
export function codeOf({ json }: Answer): unknown {
  return (Object(json) as { code?: unknown }).code;
}

export function messageOf({ json }: Answer): string {
  return String((Object(json) as { message?: unknown }).message);
}
