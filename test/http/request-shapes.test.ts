import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeOf, expectError, messageOf, rankBody } from '../support/answers.ts';
import { type Answer, openTestApp, place, type Sent, type TestApp } from '../support/open-test-app.ts';
import { rawAnswers } from '../support/raw-answers.ts';

const largest = 9007199254740991;
const roomy = { limits: { rankPerMinute: 0, verifyPerMinute: 0 } };

let app: TestApp;
let key: string;

beforeAll(async () => {
  app = await openTestApp({ config: roomy });
  key = await app.createKey({ places: [place, largest, 0] });
});

afterAll(() => app.close());

const verify = (body: Sent['body'], headers: Sent['headers'] = {}): Promise<Answer> =>
  app.post('/v1/apikey', { key, body, headers });

/** Returns a rank request as text, so that the number can have any notation. */
const rankText = (rankeeId: string) =>
  JSON.stringify(rankBody({ rankeeId: 0 })).replace('"rankeeId":0', `"rankeeId":${rankeeId}`);

const rank = (body: Sent['body'], headers: Sent['headers'] = {}, query = `placeid=${place}`): Promise<Answer> =>
  app.post(`/v1/ranker?${query}`, { key, body, headers });

const invalid = { status: 400, code: 'invalid_request', error: 'Invalid request' };

describe('ids', () => {
  test.each(['42', '"42"', '42.0', '4.2e1', '420e-1', '"042"', String(largest), `"${largest}"`, '0'])(
    '%s is a whole number',
    async (id) => expect((await verify(`{"placeid":${id}}`)).status).toBe(200),
  );

  const wrong = ['-42', '42.5', '4.25e1', '1e999', '9007199254740992', '"9007199254740992"', '"4.2e1"', '"0x2a"'];
  const odd = ['" 42"', '"forty-two"', 'true', '{}', '[42]', '[]'];
  test.each([...wrong, ...odd, '""'])('%s is not a place id', async (id) => {
    const answer = await verify(`{"placeid":${id}}`);
    expectError(answer, invalid);
    expect(messageOf(answer)).toMatch(/^placeid in the body must be a whole number/);
  });

  test.each([...wrong, ...odd, '""', 'null'])('%s is not a member id, and the error names the field', async (id) => {
    const answer = await rank(rankText(id));
    expectError(answer, invalid);
    expect(messageOf(answer)).toMatch(
      new RegExp(`^rankeeId must be a whole number from 0 to ${largest}(; -\\d+ is a Studio test player)?\\.$`),
    );
  });

  test.each(['nan', 'NaN', 'inf', '-inf', 'Infinity', 'undefined', '0x2a', '1_000'])('%s is not JSON', async (id) => {
    const answer = await verify(`{"placeid":${id}}`);
    expectError(answer, invalid);
    expect(messageOf(answer)).toMatch(/^The body is not JSON/);
  });

  test('0 is not a member id, but as a ranker id it means the game server', async () => {
    expect(messageOf(await rank(rankText('0')))).toBe('rankeeId must be above 0.');
    expect((await rank(rankBody({ rankerId: 0 }))).status).toBe(200);
  });

  test('the largest possible id is accepted as a member id and looked up in the group', async () => {
    expect(codeOf(await rank(rankText(String(largest))))).toBe('member_not_found');
  });
});

describe('the place id', () => {
  test.each(['', '{}', '[]', '{"placeid":null}', '"42"', '42', 'null', '{"PLACEID":42}'])(
    'is reported as missing from the body %s',
    async (body) => {
      expectError(await verify(body), { status: 400, code: 'missing_placeid', error: 'Missing placeid' });
    },
  );

  test.each(['', 'placeid', 'placeid=', 'place=42', 'placeid[]=42'])(
    'is reported as missing from the query %j',
    async (query) => {
      const answer = await rank(rankBody(), {}, query);
      expectError(answer, { status: 400, code: 'missing_placeid', error: 'Missing placeid' });
    },
  );

  test.each(['placeid=x', 'placeid=42.0', 'placeid=-42', 'placeid=42&placeid=42', 'placeid=%zz', 'placeid=%2042'])(
    'is refused if it is not one whole number in the query: %s',
    async (query) => expectError(await rank(rankBody(), {}, query), invalid),
  );

  test('is refused if it has two different values', async () => {
    const answer = await verify({ placeid: place, placeId: place + 1 });
    expect([answer.status, messageOf(answer)]).toEqual([
      400,
      'placeid and placeId in the body differ; send one of them.',
    ]);
    expect((await verify({ placeid: place, placeId: String(place) })).status).toBe(200);
    expect((await rank(rankBody(), {}, `placeid=${place}&placeId=7`)).status).toBe(400);
  });

  test('may be spelled placeId in the body and in the query', async () => {
    expect((await verify({ placeId: place })).status).toBe(200);
    expect((await rank(rankBody(), {}, `placeId=${place}`)).status).toBe(200);
    expect((await rank(rankBody(), {}, `placeid=&placeId=${place}`)).status).toBe(200);
    expect((await rank(rankBody(), {}, `x=1&placeid=%34%32`)).status).toBe(200);
  });
});

describe('the rank request', () => {
  test('is refused with the name of every missing field', async () => {
    const answer = await rank({});
    expectError(answer, invalid);
    expect(messageOf(answer)).toBe(
      'rankerName is missing; rankerId is missing; rankeeName is missing; rankeeId is missing; newRankId is missing.',
    );
  });

  test.each(['rankerId', 'rankeeId'])(
    'is refused if %s is a Studio test player, and the error gives that reason',
    async (field) => {
      const message = messageOf(await rank(rankBody({ [field]: -1 })));
      expect(message).toMatch(new RegExp(`^${field} must be a whole number .*; -1 is a Studio test player\\.`));
    },
  );

  test.each(['rankerName', 'rankerId', 'rankeeName', 'rankeeId', 'newRankId'])('must have %s', async (field) => {
    expect(messageOf(await rank(rankBody({ [field]: undefined })))).toBe(`${field} is missing.`);
  });

  test('is refused with the name of every field of the wrong type', async () => {
    const wrong = { rankerName: 5, rankeeName: null, newRankId: [20], command: {}, webhookUrl: 1 };
    expect(messageOf(await rank(rankBody(wrong)))).toBe(
      `rankerName must be a string; rankeeName must be a string; newRankId must be a rank number or a role id; command must be a string; webhookUrl must be a string.`,
    );
  });

  test.each(['', '[]', '"text"', '5', 'null'])('must be an object, not %j', async (body) => {
    const answer = await rank(body);
    expectError(answer, invalid);
    expect(messageOf(answer)).toBe('The body must be a JSON object.');
  });

  test('may have the other fields of the reference client; of the webhook, only the host is stored', async () => {
    const webhookUrl = 'https://user:pass@discord.example/api/webhooks/1/token-of-it?wait=1';
    const extra = { command: 'promote', oldRankName: 'Trainee', prefix: ';', webhookUrl, somethingElse: { a: 1 } };
    const answer = await rank(rankBody({ ...extra, rankeeId: 1002, newRankId: 10 }));
    expect(Object.keys(Object(answer.json))).toEqual(['success', 'message', 'rankeeId', 'newRankId']);
    const stored = await app.store.findChange(String(answer.headers['x-rank-change']));
    expect(stored).toMatchObject({
      command: 'promote',
      oldRankName: 'Trainee',
      prefix: ';',
      webhookHost: 'discord.example',
    });
    expect(JSON.stringify(stored)).not.toMatch(/token-of-it|pass@|somethingElse/);
  });

  test.each(['', 'not an address', null])(
    'may have the webhook address %j, which counts as missing',
    async (webhookUrl) => {
      const answer = await rank(rankBody({ webhookUrl, command: null }));
      expect(answer.status).toBe(200);
      const stored = await app.store.findChange(String(answer.headers['x-rank-change']));
      expect(stored).not.toHaveProperty('webhookHost');
    },
  );

  test('may have any text of at most 1000 characters as a name, of which rankd stores a hundred', async () => {
    for (const name of ['', 'Zoë 👩‍🚀', `"'\\\n`, '\u0001'.repeat(1000), '€'.repeat(1000)]) {
      const answer = await rank(rankBody({ rankeeId: 1005, rankeeName: name, rankerName: name, newRankId: 10 }));
      expect(answer.status).toBe(200);
      expect(Buffer.byteLength(answer.text)).toBeLessThan(2048);
    }
    const long = { rankeeName: '€'.repeat(101), command: '👩'.repeat(100), prefix: '€'.repeat(1000) };
    const answer = await rank(rankBody({ ...long, newRankId: 199 }));
    expect(await app.store.findChange(String(answer.headers['x-rank-change']))).toMatchObject({
      rankeeName: `${'€'.repeat(99)}…`,
      command: long.command,
      prefix: `${'€'.repeat(99)}…`,
    });
    expect(messageOf(await rank(rankBody({ rankerName: 'x'.repeat(1001) })))).toMatch(/^rankerName must be at most/);
  });
});

test.each(['/v1/ranker/', '//v1//ranker', '/v1/ranker///', '/v1/%72anker'])(
  '%s is the rank operation',
  async (path) => {
    expect((await app.post(`${path}?placeid=${place}`, { key, body: rankBody() })).status).toBe(200);
  },
);

test.each([
  ['the key twice', (good: string) => [good, good]],
  ['the key first', (good: string) => [good, `rk_live_${'0'.repeat(40)}`]],
  ['the key last', (good: string) => ['nothing', good]],
])('two Authorization headers are refused, even on a connection with an accepted key: %s', async (_what, both) => {
  const request = (lines: string[]) =>
    `POST /v1/apikey HTTP/1.1\r\nhost: rankd\r\n${lines.map((line) => `${line}\r\n`).join('')}content-length: 14\r\n\r\n{"placeid":${place}}`;
  const doubled = both(key).map((one) => `authorization: Bearer ${one}`);
  const answers = await rawAnswers(
    app.url,
    request([`authorization: Bearer ${key}`]) + request([...doubled, 'connection: close']),
  );
  expect(answers.map((answer) => [answer.status, codeOf(answer)])).toEqual([
    [200, undefined],
    [401, 'missing_authorization'],
  ]);
});
