import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { FakeDiscord } from '../test/support/fake-discord.ts';

/**
 * Receives webhooks on one port: as a Discord channel that enforces its rate limits, and as programs that accept every
 * event immediately.
 */
const discord = new FakeDiscord();
const server = createServer(async (request, response) => {
  const body = await text(request);
  const url = new URL(request.url ?? '/', 'http://targets');
  const isDiscord = url.pathname.startsWith('/api/');
  const answer = isDiscord ? discord.answer(request.method ?? '', url, body) : { status: 204, headers: {}, body: '' };
  response.writeHead(answer.status, answer.headers).end(answer.body);
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
});
