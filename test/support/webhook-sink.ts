import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  headers: Record<string, string>;
  body: string;
  /** The parsed body. */
  event: { type: string; timestamp: string; data: Record<string, unknown> & { sequence: number } };
  at: number;
}

/** A sink's response. `hang` sends none, and `drop` closes the connection without one. */
export type SinkAnswer = number | { status: number; headers?: Record<string, string>; body?: string } | 'hang' | 'drop';

export interface WebhookSink extends AsyncDisposable {
  /** e.g. `http://127.0.0.1:40213/hook/not-to-be-shown` */
  url: string;
  port: number;
  received: Received[];
  /** Sets the response to all further requests: a constant, or a function of the request. Until then, it is 204. */
  answers(answer: SinkAnswer | ((received: Received) => SinkAnswer)): void;
}

export async function startWebhookSink({ port = 0 }: { port?: number } = {}): Promise<WebhookSink> {
  const received: Received[] = [];
  let answer: (received: Received) => SinkAnswer = () => 204;
  const server = createServer(async (request, response) => {
    const one = await read(request);
    received.push(one);
    const chosen = answer(one);
    if (chosen === 'hang') return;
    if (chosen === 'drop') return void request.socket.destroy();
    const { status, headers = {}, body = '' } = typeof chosen === 'number' ? { status: chosen } : chosen;
    response.writeHead(status, headers).end(body);
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  const { port: chosen } = server.address() as AddressInfo;
  return {
    ...{ url: `http://127.0.0.1:${chosen}/hook/not-to-be-shown`, port: chosen, received },
    answers: (next) => {
      answer = typeof next === 'function' ? next : () => next;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function read(request: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString('utf8');
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
  return { headers, body, event: body === '' ? undefined : JSON.parse(body), at: Date.now() };
}
