import { gzipSync } from 'node:zlib';
import fc from 'fast-check';

/** Text that has broken similar programs through SQL, log lines, terminals, prototypes, encodings or sizes. */
export const hostileTexts = [
  "'; DROP TABLE keys; --",
  '" OR 1=1 /*',
  "Robert'); DELETE FROM audit_events;--",
  '\n{"level":"error","msg":"forged"}',
  '\r\nHTTP/1.1 200 OK\r\n\r\n',
  '\u001b[2J\u001b]0;owned\u0007\u001b[31m',
  '\u009b31m\u0000\u0008',
  '\u202egnp.exe\u2066\u2028',
  'Adm\u00adin\u061c\u200b\u200c\u200e\u200f\u2060\ufeff',
  'Adm\u200din',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '%00%0a%s%n{{7*7}}',
  '=cmd|calc!A1',
  '../../etc/passwd',
  '<script>alert(1)</script>',
  '\ud800',
  '👩‍🚀'.repeat(300),
  'x'.repeat(1_001),
  '',
] as const;

const names = [
  'placeid',
  'placeId',
  'rankerName',
  'rankerId',
  'rankeeName',
  'rankeeId',
  'newRankId',
  'command',
  'oldRankName',
  'prefix',
  'webhookUrl',
  'robloxUserId',
  'username',
  'rank',
  'reason',
  'duration',
  'userId',
  'user_id',
  'rankId',
  'role',
  'change',
  '__proto__',
  'constructor',
  'prototype',
  'length',
  'toJSON',
] as const;

const numbers = [0, -0, 1, 42, 1001, 1002, 20, 255, 256, -1, 1.5, 2 ** 53 - 1, 2 ** 53, 1e21, 1e308] as const;

const text = fc.oneof(fc.constantFrom(...hostileTexts), fc.string({ unit: 'binary' }), fc.webUrl());
const scalar = fc.oneof(
  fc.constantFrom(...numbers),
  fc.double(),
  text,
  fc.constantFrom('42', '1001', '00042', '9007199254740992', '1e3', ' 7 '),
  fc.constantFrom(null, true, false),
);
const value = fc.oneof({ weight: 6, arbitrary: scalar }, { weight: 1, arbitrary: fc.jsonValue() });

/** Bodies with the fields of most operations, in which up to two fields are added or replaced at random. */
const nearlyRight = fc
  .tuple(
    fc.constantFrom(1001, 1002, 1003, 1004, 9_999),
    fc.constantFrom(1, 10, 20, 50, 254, 255),
    fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 2, noNullPrototype: true }),
  )
  .map(([rankeeId, newRankId, odd]) => {
    const v1 = { placeid: 42, rankerName: 'Ann', rankerId: 0, rankeeName: 'Bob', rankeeId, newRankId };
    const v2 = { robloxUserId: rankeeId, rank: newRankId, role: newRankId, duration: '1h' };
    const right = { ...v1, ...v2, userId: rankeeId, rankId: newRankId, change: 1 };
    return JSON.stringify(Object.fromEntries([...Object.entries(right), ...Object.entries(odd)]));
  });

const json = fc.oneof(
  { weight: 6, arbitrary: nearlyRight },
  { weight: 1, arbitrary: fc.jsonValue().map((parsed) => JSON.stringify(parsed)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '{"__proto__":{"polluted":true},"placeid":42}',
      '{"constructor":{"prototype":{"polluted":true}},"placeid":42}',
      '{"placeid":42,"placeid":43}',
      '{"placeid":1e999}',
      '{"placeid":nan}',
      '[[[[[[[[',
      `${'['.repeat(30_000)}${']'.repeat(30_000)}`,
      `{"placeid":${'9'.repeat(5_000)}}`,
      '\uFEFF{"placeid":42}',
      '{"placeid":42}x',
    ),
  },
);

export const anyBody: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 8, arbitrary: json.map((body) => Buffer.from(body)) },
  { weight: 2, arbitrary: fc.tuple(json, anyEdits()).map(([body, edit]) => edit(Buffer.from(body))) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 1, arbitrary: json.map((body) => gzipSync(body)) },
  { weight: 1, arbitrary: json.map((body) => Buffer.from(body, 'utf16le')) },
  { weight: 1, arbitrary: fc.constant(gzipSync(Buffer.alloc(5_000_000))) },
);

/** Contains only characters that Node.js allows in a header. */
const headerText = fc.oneof(
  fc.constantFrom(...hostileTexts).map((odd) => odd.replaceAll(/[^\t\x20-\x7e]/g, '?')),
  fc.string({ maxLength: 60 }).map((odd) => odd.replaceAll(/[^\t\x20-\x7e]/g, '?')),
);

const headerNames = [
  'content-type',
  'content-encoding',
  'idempotency-key',
  'accept',
  'accept-encoding',
  'host',
  'origin',
  'cookie',
  'roblox-id',
  'x-api-key',
  'api_token',
  'x-request-id',
  'x-forwarded-for',
  'x-http-method-override',
  'range',
  'if-none-match',
  'te',
  '__proto__',
] as const;

/**
 * Headers with a credential, which can be valid, almost valid, random or empty, and other headers, which can contain a
 * second credential.
 */
export function anyHeaders(key: string): fc.Arbitrary<Record<string, string>> {
  const authorization = fc.oneof(
    { weight: 8, arbitrary: fc.constant(`Bearer ${key}`) },
    { weight: 1, arbitrary: fc.constantFrom(`bearer  ${key} `, `Bearer ${key}x`, `Basic ${key}`, key, 'Bearer', '') },
    { weight: 1, arbitrary: headerText },
  );
  const usual = fc.constantFrom<Record<string, string>>(
    ...[{}, { 'content-encoding': 'gzip' }, { expect: '100-continue' }, { 'x-api-key': key }, { 'staff-token': key }],
  );
  const others = fc.dictionary(fc.constantFrom(...headerNames), headerText, { maxKeys: 3, noNullPrototype: true });
  return fc
    .tuple(authorization, usual, fc.oneof(fc.constant({}), others))
    .map(([credential, encoding, odd]) => ({ authorization: credential, ...encoding, ...odd }));
}

/** Request targets, all valid in a request line, and most with the path of an operation. */
export const anyTarget: fc.Arbitrary<string> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('/v1/ranker?placeid=42', '/v1/apikey') },
  {
    weight: 5,
    arbitrary: fc
      .constantFrom(
        ...['/v2/rank', '/v2/promote', '/v2/demote', '/v2/suspend', '/v2/unsuspend', '/v2/roles', '/v2/workspace'],
        ...['/v2/roles/add', '/v2/roles/remove'],
        ...['/v2/member?robloxUserId=1001', '/v2/member?username=Newcomer', '/api/roblox/setrank', '/roblox/promote'],
        ...['/group/1/member/1001/rank', '/group/1/member/1001/rank-change'],
      )
      .map((path) => `${path}${path.includes('?') ? '&' : '?'}placeid=42`),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...hostileTexts), fc.constantFrom(...hostileTexts))
      .map((odd) => odd.map((one) => encodeURIComponent(one.toWellFormed())))
      .chain(([one, other]) =>
        fc.constantFrom(
          `/v2/member?username=${one}&placeid=42`,
          `/v2/member?robloxUserId=${one}&username=${other}&placeid=42`,
          `/group/${one}/member/${other}/rank?placeid=42`,
          `/v2/${one}?placeid=42`,
        ),
      ),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom('/v1/ranker', '/v1/apikey', '//v1//ranker/'), fc.constantFrom(...hostileTexts))
      .map(([path, odd]) => `${path}?placeid=${encodeURIComponent(odd.toWellFormed())}`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '/v1/ranker?placeid=42&placeid=43',
      '/v1/ranker?placeid[]=42',
      '/v1/ranker?placeid[$gt]=0',
      '/v1/ranker?__proto__[polluted]=1&placeid=42',
      '/v1/ranker?placeid=%zz',
      '/v1/../v1/apikey',
      '/v1/apikey;x=1',
      '/%2e%2e/%2e%2e/etc/passwd',
      '/v1/%00',
      '/__proto__',
      '/healthz',
      '/',
      '*',
    ),
  },
  { weight: 1, arbitrary: fc.webPath() },
);

export const anyMethod: fc.Arbitrary<string> = fc.oneof(
  { weight: 12, arbitrary: fc.constant('POST') },
  { weight: 3, arbitrary: fc.constant('GET') },
  { weight: 1, arbitrary: fc.constantFrom('GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY') },
);

/** Edits that flip, remove, duplicate or insert bytes. */
export function anyEdits(): fc.Arbitrary<(bytes: Buffer) => Buffer> {
  const edit = fc.record({
    kind: fc.constantFrom('flip', 'cut', 'double', 'insert'),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.integer({ min: 1, max: 12 }),
    put: fc.oneof(
      fc.constantFrom(
        '\r\n',
        '\n',
        '\0',
        ':',
        ' ',
        '\r\n\r\n',
        'Content-Length: 5\r\n',
        'Transfer-Encoding: chunked\r\n',
      ),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 4 }),
    ),
  });
  return fc.array(edit, { maxLength: 2 }).map((edits) => (bytes) => {
    let edited = bytes;
    for (const { kind, at, length, put } of edits) {
      const start = Math.floor(at * edited.length);
      const [before, piece, after] = [
        edited.subarray(0, start),
        edited.subarray(start, start + length),
        edited.subarray(start + length),
      ];
      const changed = {
        flip: () => [before, piece.map((byte) => byte ^ 0x11), after],
        cut: () => [before, after],
        double: () => [before, piece, piece, after],
        insert: () => [before, Buffer.from(put, 'latin1'), piece, after],
      };
      edited = Buffer.concat(changed[kind]());
    }
    return edited;
  });
}
