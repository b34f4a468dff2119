import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { httpWebhookSender } from '../../src/webhooks/http-sender.ts';
import { startWebhookSink } from '../support/webhook-sink.ts';

let lookups = 0;
let answers: string[][] = [];
const sender = httpWebhookSender(systemClock, (_name, _options, done) => {
  const found = answers[Math.min(lookups, answers.length - 1)] ?? [];
  lookups += 1;
  done(
    null,
    found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
  );
});
const post = (address: string, rest: { allowPrivate?: string[]; timeoutMs?: number; secrets?: string[] } = {}) =>
  sender.send({ method: 'POST', address, body: '{}', timeoutMs: 5_000, allowPrivate: [], ...rest });

/** Sets the addresses to which every name resolves, one list for each lookup. */
function resolveTo(...found: string[][]): void {
  answers = found;
  lookups = 0;
}

test('a numeric address is checked, too, and its refusal names the setting', async () => {
  await using sink = await startWebhookSink();
  expect(await post(sink.url)).toMatchObject({ isAnswered: false });
  const https = sink.url.replace('http:', 'https:');
  expect(await post(https)).toMatchObject({
    error: expect.stringContaining('127.0.0.1 is not public; if it is yours, add it to webhooks.allow_private'),
  });
  expect(sink.received).toEqual([]);
});

test('a name that resolves to a public and a private address is not called', async () => {
  await using sink = await startWebhookSink();
  resolveTo(['93.184.215.14', '127.0.0.1']);
  expect(await post(`https://both.example:${sink.port}/x`)).toMatchObject({
    error: expect.stringContaining('127.0.0.1'),
  });
  resolveTo(['::ffff:127.0.0.1']);
  expect(await post(`https://both.example:${sink.port}/x`)).toMatchObject({
    error: expect.stringContaining('is not public'),
  });
  expect(sink.received).toEqual([]);
});

test('a name is resolved once per request, so the checked address is the one that is called', async () => {
  await using sink = await startWebhookSink();
  resolveTo(['127.0.0.1'], ['93.184.215.14']);
  const answer = await post(`http://rebinding.example:${sink.port}/x`, { allowPrivate: ['127.0.0.1'] });
  expect(answer).toMatchObject({ isAnswered: true, status: 204 });
  expect(lookups).toBe(1);
});

test('a redirect is returned as a response, and is not followed', async () => {
  await using inner = await startWebhookSink();
  await using outer = await startWebhookSink();
  outer.answers({ status: 302, headers: { location: inner.url } });
  expect(await post(outer.url, { allowPrivate: ['127.0.0.1'] })).toMatchObject({ isAnswered: true, status: 302 });
  expect(inner.received).toEqual([]);
});

test('only the beginning of an endless response is read, and the address and the secret are removed', async () => {
  const server = createServer((request, response) => {
    request.resume();
    response.write(`${request.url} whsec_the-secret-of-it and so on. `);
    const more = setInterval(() => response.write('x'.repeat(10_000)), 1);
    response.once('close', () => clearInterval(more));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/a-long-token`;
  const answer = await post(address, { allowPrivate: ['127.0.0.1'], secrets: ['whsec_the-secret-of-it'] });
  const text = answer.isAnswered ? answer.text : '';
  expect(text.length).toBeLessThanOrEqual(2_048);
  expect(text).toContain('*** *** and so on');
});

test('secrets are removed from a response, even in part, decoded, or without their prefix', async () => {
  await using sink = await startWebhookSink();
  const said = 'key=s3cr3t-value pass=p@ss/w0rd! sign=c2VjcmV0LW9mLXRoZS1ib3Q= token=tök-en+one';
  sink.answers({ status: 403, body: said });
  const query = '?key=s3cr3t-value&pass=p%40ss%2Fw0rd!';
  const answer = await post(`http://127.0.0.1:${sink.port}/hook/t%C3%B6k-en+one${query}`, {
    ...{ allowPrivate: ['127.0.0.1'], secrets: ['whsec_c2VjcmV0LW9mLXRoZS1ib3Q='] },
  });
  expect(answer).toMatchObject({ status: 403, text: 'key=*** pass=*** sign=*** token=***' });
});

test('a status that arrives in time counts as a response, even if the body trickles, breaks off, or never follows', async () => {
  const endings = [
    (response: ServerResponse) => {
      const drip = setInterval(() => response.write('x'), 20);
      response.once('close', () => clearInterval(drip));
    },
    (response: ServerResponse) => setTimeout(() => response.destroy(), 20),
    (response: ServerResponse) => response.flushHeaders(),
  ];
  for (const ending of endings) {
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-length': '2000000000' }).write('x');
      ending(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const answer = await post(address, { allowPrivate: ['127.0.0.1'], timeoutMs: 300 });
    expect(answer).toMatchObject({ isAnswered: true, status: 200, text: expect.stringMatching(/^x+$/) });
  }
});

test('a name lookup that never ends does not outlast the timeout of its request', async () => {
  const stuck = httpWebhookSender(systemClock, () => undefined);
  const answer = await stuck.send({ method: 'POST', address: 'https://x.example/', timeoutMs: 200, allowPrivate: [] });
  expect(answer).toEqual({ isAnswered: false, error: 'it does not respond in time (0 s)' });
});

test('a timeout and a broken connection are reported without an address', async () => {
  await using sink = await startWebhookSink();
  sink.answers('hang');
  const late = await post(sink.url, { allowPrivate: ['127.0.0.1'], timeoutMs: 1_000 });
  sink.answers('drop');
  const broken = await post(sink.url, { allowPrivate: ['127.0.0.1'] });
  expect([late, broken]).toEqual([
    { isAnswered: false, error: 'it does not respond in time (1 s)' },
    { isAnswered: false, error: 'the connection was lost (ECONNRESET)' },
  ]);
});
