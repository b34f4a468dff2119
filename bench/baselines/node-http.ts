import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A bare `node:http` server that echoes the body, to measure the cost of Node.js itself. */
const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json; charset=utf-8');
  request.pipe(response);
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
});
