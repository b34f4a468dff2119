import net from 'node:net';
import { text } from 'node:stream/consumers';
import { expectDescribedError } from './described-answers.ts';
import type { Answer } from './send.ts';

/** Opens a connection for bytes that no HTTP client would send. Ignores its errors, because the server may reset it. */
export function connectTo(url: string): net.Socket {
  return net.connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined);
}

/** Sends bytes on a new connection, and returns all responses once the server closes it. */
export async function rawAnswers(url: string, bytes: string | Buffer, { thenEnds = false } = {}): Promise<Answer[]> {
  const socket = connectTo(url);
  socket.write(bytes);
  if (thenEnds) socket.end();
  return parse(await text(socket));
}

function parse(received: string): Answer[] {
  return received.split(/(?=HTTP\/1\.1 )/).map((answer) => {
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    const [first = '', ...lines] = head.split('\r\n');
    const headers = lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 2),
    ]);
    const json = body === '' ? undefined : JSON.parse(body);
    const status = Number(first.split(' ')[1]);
    if (status >= 400) expectDescribedError(body);
    return { status, headers: Object.fromEntries(headers), text: body, json };
  });
}
