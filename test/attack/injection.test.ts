import { expect, test } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { plain } from '../../src/base/paint.ts';
import { operate } from '../contracts/store/samples.ts';
import { rankBody } from '../support/answers.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { openTestApp, place } from '../support/open-test-app.ts';
import { CliHome } from '../support/run-cli.ts';
import { hostileTexts } from './hostile.ts';

/** Characters that control a terminal, break a line, reverse the text direction or are invisible. */
const controls = /[\p{Cc}\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/u;

const texts = hostileTexts.filter((text) => text.length <= 1_000);

test('text from callers is stored as it was sent, and no SQL in it is executed', async () => {
  await using app = await openTestApp({ config: { policy: { lockedRoles: [20] } } });
  const key = await app.createKey();
  for (const text of texts) {
    const body = rankBody({ rankerName: text, rankeeName: text, command: text, prefix: text, oldRankName: text });
    const { status } = await app.post(`/v1/ranker?placeid=${place}`, { key, body });
    expect(status).toBe(403);
  }
  const changes = await app.store.listChanges({ limit: 100 });
  const sent = texts.map((text) => text.toWellFormed()).toReversed();
  for (const field of ['rankerName', 'rankeeName', 'command', 'prefix', 'oldRankName'] as const)
    expect(changes.map((change) => change[field])).toEqual(sent);
  expect(await app.store.listKeys()).toHaveLength(1);
  expect((await app.verify(key)).status).toBe(200);
});

test('text from operators is stored as it was entered', async () => {
  await using app = await openTestApp();
  for (const [index, text] of texts.entries()) {
    const { id } = await app.createKey({ name: text || 'empty' }).then(async () => {
      const key = await app.store.findKey(text || 'empty');
      return key ?? { id: '' };
    });
    await operate(app.app).addEntries({ keyId: id, placeIds: [index + 1], note: text }, text || 'cli:ann@host');
  }
  const notes = (await app.store.listEntries({})).map(({ note }) => note).filter((note) => note !== '');
  expect(new Set(notes)).toEqual(new Set(texts.filter((text) => text !== '').map((text) => text.toWellFormed())));
  expect(await app.store.listKeys()).toHaveLength(texts.length);
});

test('a request is one log line, whatever it contains', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  const before = app.logLines.length;
  for (const text of texts) {
    const odd = encodeURIComponent(text.toWellFormed());
    await app.post(`/v1/ranker?placeid=${place}&x=${odd}`, {
      key,
      body: rankBody({ command: text, rankeeName: text }),
    });
    await app.post(`/v1/${odd}`, { key: Buffer.from(text).toString('base64') });
  }
  await expect.poll(() => app.logLines.length - before).toBe(2 * texts.length);
  for (const line of app.logLines) {
    expect(JSON.parse(line)).toMatchObject({ level: 'info' });
    expect(line.slice(0, -1)).not.toMatch(controls);
  }
});

test.each([true, false])('logged text cannot forge a log line (in the readable format: %s)', (readable) => {
  const lines: string[] = [];
  const log = createLog({ level: 'info', readable: readable && plain, write: (line) => void lines.push(line) });
  for (const text of texts) log.warn({ what: text, deep: { text } }, text);
  expect(lines).toHaveLength(texts.length);
  for (const line of lines) expect(line.slice(0, -1)).not.toMatch(controls);
  lines.length = 0;
  log.error({ err: new Error('over\u001b[2J\r\n12:00:00 info  forged') }, 'failed');
  const frames = lines.join('').split('\n').slice(0, -1);
  for (const line of frames) expect(line).not.toMatch(controls);
  if (readable) expect(frames.slice(1)).toSatisfy((rest: string[]) => rest.every((line) => line.startsWith('  ')));
});

test('no command output has control characters from callers or notes: text, JSON, CSV and errors', {
  timeout: 60_000,
}, async () => {
  using home = new CliHome();
  await home.here(['key', 'create', 'game', '--out', 'game.key']);
  await using daemon = await DaemonProcess.start(home);
  const secret = await home.createKey('caller');
  const odd = texts.filter((text) => !text.includes('\0'));
  for (const text of odd) {
    await daemon.rank(secret, { rankerName: text, rankeeName: text, command: text, newRankId: 10 });
  }
  const note = odd.join(' ').toWellFormed();
  await home.here(['whitelist', 'add', '2', '--key', 'caller', '--note', note]);
  const { changes } = await home.json<{ changes: Array<{ id: string }> }>('history', 'list');
  const commands = [
    ['history', 'list'],
    ['history', 'show', changes[3]?.id ?? ''],
    ['whitelist', 'list'],
    ['key', 'list'],
    ['key', 'show', 'caller'],
    ['audit', 'list', '--limit', '100'],
    ['key', 'show', note],
    ['key', 'create', note],
    ['whitelist', 'add', note],
    ['rank', 'show', note],
    ['config', 'check', '-c', note],
  ];
  const runs = commands
    .flatMap((args) => [args, [...args, '--json']])
    .concat([
      ['audit', 'list', '--export', 'csv'],
      ['history', 'export', '--format', 'csv'],
      ['history', 'export', '--format', 'jsonl'],
    ]);
  expect(changes.length).toBe(Math.min(odd.length, 20));
  for (const args of runs) {
    const { stdout, stderr } = await home.here(args);
    const shown = args.includes('csv') ? stdout.replaceAll('\r\n', '\n') : stdout;
    for (const line of `${shown}${stderr}`.split('\n')) expect(line, args.slice(0, 2).join(' ')).not.toMatch(controls);
  }
});

test('names such as __proto__ have no special meaning', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  const inherited = `{"__proto__": ${JSON.stringify(rankBody())}}`;
  const bodies = [inherited, `{"constructor":{"prototype":{"polluted":1}},${JSON.stringify(rankBody()).slice(1)}`];
  const statuses = [];
  for (const body of bodies) statuses.push((await app.post(`/v1/ranker?placeid=${place}`, { key, body })).status);
  expect(statuses).toEqual([400, 200]);
  const query = await app.post(`/v1/ranker?__proto__[placeid]=${place}&__proto__=1`, { key, body: rankBody() });
  expect(query.status).toBe(400);
  expect((await app.post('/v1/apikey', { key, body: `{"__proto__":{"placeid":${place}}}` })).status).toBe(400);
  expect(Object.keys(Object.prototype)).toEqual([]);
});

test.each(['__proto__: { policy: { max_rank: 1 } }', 'policy: { __proto__: { max_rank: 1 } }', 'constructor: 1'])(
  'a configuration with %s is refused with its position',
  async (yaml) => {
    using home = new CliHome();
    const { writeFileSync } = await import('node:fs');
    writeFileSync(home.path('rankd.yaml'), `${yaml}\n`);
    const { code, stderr } = await home.here(['config', 'check']);
    expect([code, stderr]).toEqual([78, expect.stringMatching(/rankd\.yaml:1:\d+ .*unknown setting/)]);
  },
);
