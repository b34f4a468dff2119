import { describe, expect, test } from 'vitest';
import { isTransient, platformError } from '../../../src/platforms/upstream/platform-error.ts';

const v2 = (code: string, message: string) => JSON.stringify({ code, message });
const read = (status: number, body: string, retryAfterMs?: number) =>
  platformError({ status, body, retryAfterMs }, { isWrite: false });
const write = (status: number, body: string, retryAfterMs?: number) =>
  platformError({ status, body, retryAfterMs }, { isWrite: true });
const html = '<!DOCTYPE html><html><body>Access denied</body></html>';

describe('the platform error', () => {
  test.each([
    [401, '{"errors":[{"code":0,"message":"Invalid API Key"}]}', 'platform_credential'],
    [403, v2('PERMISSION_DENIED', 'no'), 'above_acting_account'],
    [403, v2('permission_denied', 'no'), 'above_acting_account'],
    [
      403,
      '{"errors":[{"code":4,"message":"You do not have permission to manage this member."}]}',
      'above_acting_account',
    ],
    [403, '{"errors":[{"code":0,"message":"Challenge is required to authorize the request"}]}', 'platform_credential'],
    [403, html, 'platform_credential'],
    [404, v2('NOT_FOUND', 'The membership was not found.'), 'member_not_found'],
    [404, v2('NOT_FOUND', ''), 'member_not_found'],
    [404, v2('NOT_FOUND', 'The role was not found.'), 'platform_rejected'],
    [404, '{"errors":[{"code":0,"message":"Not Found"}]}', 'platform_rejected'],
    [404, html, 'platform_rejected'],
    [400, v2('INVALID_ARGUMENT', 'Invalid User ID in the request.'), 'member_not_found'],
    [400, '{"errors":[{"code":3,"message":"The user is invalid or does not exist."}]}', 'member_not_found'],
    [400, v2('INVALID_ARGUMENT', 'Cannot assign a base role.'), 'platform_rejected'],
    [400, v2('INVALID_ARGUMENT', 'Cannot assign the Member role.'), 'platform_rejected'],
    [400, v2('INVALID_ARGUMENT', 'Failed to parse resource path and its identifiers - 47.'), 'platform_rejected'],
    [400, '', 'platform_rejected'],
    [415, '', 'platform_rejected'],
    [429, v2('RESOURCE_EXHAUSTED', 'Too many requests.'), 'platform_busy'],
    [408, '', 'outcome_unknown'],
    [409, v2('ABORTED', 'conflict'), 'outcome_unknown'],
    [499, v2('CANCELLED', 'gone'), 'outcome_unknown'],
    [500, v2('INTERNAL', 'oops'), 'outcome_unknown'],
    [501, v2('NOT_IMPLEMENTED', 'no'), 'outcome_unknown'],
    [503, html, 'outcome_unknown'],
  ])('for a write answered with %i %s is %s', (status, body, code) => {
    expect(write(status, body).code).toBe(code);
  });

  test.each([
    [401, '{"errors":[{"code":0,"message":"Invalid API Key"}]}', 'platform_credential'],
    [403, v2('PERMISSION_DENIED', 'no'), 'platform_credential'],
    [404, v2('NOT_FOUND', 'The group was not found.'), 'platform_rejected'],
    [404, v2('NOT_FOUND', 'The user was not found.'), 'platform_rejected'],
    [400, v2('INVALID_ARGUMENT', 'The provided filter is invalid.'), 'platform_rejected'],
    [429, '', 'platform_busy'],
    [409, '', 'platform_unavailable'],
    [500, html, 'platform_unavailable'],
    [503, '', 'platform_unavailable'],
  ])('for a read answered with %i %s is %s', (status, body, code) => {
    expect(read(status, body).code).toBe(code);
  });

  test('is transient only if a retry can succeed', () => {
    const statuses = [200, 302, 400, 401, 403, 404, 408, 409, 422, 429, 499, 500, 501, 502, 503, 504];
    const passing = (body: string) => statuses.filter((status) => isTransient({ status, body }));
    expect(passing('')).toEqual([408, 409, 429, 499, 500, 502, 503, 504]);
    for (const text of [
      'FailedToAcquireLock',
      'TooManyRequests',
      'Migration in progress. Please try again in a moment.',
    ])
      for (const body of [text, v2(text, ''), v2('INVALID_ARGUMENT', `Oh: ${text}`)])
        expect(passing(body)).toEqual(expect.arrayContaining([400, 403, 404, 422]));
    expect(isTransient({ status: 401, body: v2('X', 'try again') })).toBe(false);
  });

  test('includes the wait that the platform requests', () => {
    expect(read(429, '', 7_000).retryAfterMs).toBe(7_000);
    expect(read(503, '', 9_000).retryAfterMs).toBe(9_000);
  });

  test('for a denied change names the permissions that the operator should check', () => {
    const { message } = write(403, v2('PERMISSION_DENIED', 'no'));
    expect(message).toContain('Manage lower-ranked member ranks');
    expect(message).toContain('rank above');
    expect(message).toContain('group:write');
  });
});

describe("the platform's own words", () => {
  test.each([
    ['the gateway', '{"errors":[{"code":4,"message":"said so"}],"message":"not this"}', '400 4: said so'],
    ['v2', v2('INVALID_ARGUMENT', 'said so'), '400 INVALID_ARGUMENT: said so'],
    ['the older services', '{"error":"BadThing","message":"said so","errorDetails":[]}', '400 BadThing: said so'],
    ['a problem document', '{"errors":{"id":["not this"]},"title":"said so","status":400}', '400: said so'],
    ['plain text', 'said so', '400: said so'],
    ['a page', html, '400: a web page instead of JSON'],
    ['nothing', '', '400'],
    ['an empty list', '{"errors":[]}', '400'],
    ['null', 'null', '400: null'],
  ])('are extracted from %s', (_family, body, words) => {
    expect(read(400, body).message).toContain(`(${words})`);
  });

  test('are cut to 200 characters, without control characters', () => {
    const { message } = read(400, v2('INVALID_ARGUMENT', `a\r\nb\u001b[31m\u202e${'x'.repeat(5_000)}`));
    expect(message).toContain('a b [31m x');
    expect(message).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(message.length).toBeLessThan(300);
  });

  test('are cut between characters, never inside one', () => {
    expect(read(400, v2('INVALID_ARGUMENT', '🙂'.repeat(300))).message).toContain(`: ${'🙂'.repeat(199)}…)`);
  });
});
