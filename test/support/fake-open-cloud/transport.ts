import type { IncomingMessage, ServerResponse } from 'node:http';
import { type FakeAnswer, json } from './answers.ts';
import type { Fault } from './faults.ts';

/** Longer than any client should accept. */
const oversizedBody = JSON.stringify({ padding: 'x'.repeat(1.25 * 1024 * 1024) });

export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/**
 * Sends the response, altered by the fault if there is one. Returns the status sent, or 0 if the response was not
 * completed.
 */
export function deliver(response: ServerResponse, answer: FakeAnswer, fault: Fault | undefined): number {
  switch (fault?.kind) {
    case 'hang':
      return 0;
    case 'reset':
      response.socket?.resetAndDestroy();
      return 0;
    case 'cut':
      response.writeHead(answer.status, { ...answer.headers, 'content-length': Buffer.byteLength(answer.body) });
      response.write(answer.body.slice(0, answer.body.length / 2), () => response.socket?.destroy());
      return 0;
    default:
      return send(response, altered(answer, fault));
  }
}

function send(response: ServerResponse, { status, headers, body }: FakeAnswer): number {
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
  response.end(body);
  return status;
}

function altered(answer: FakeAnswer, fault: Fault | undefined): FakeAnswer {
  if (fault === undefined || fault.kind === 'slow') return answer;
  const headers = fault.headers ?? {};
  if (fault.kind.startsWith('status '))
    return statusAnswer(Number(fault.kind.slice('status '.length)), headers, fault.body);
  if (fault.kind === 'html') {
    return {
      status: answer.status,
      headers: { 'content-type': 'text/html', ...headers },
      body: '<!DOCTYPE html><title>Down for maintenance</title>',
    };
  }
  if (fault.kind === 'redirect') return { status: 302, headers: { location: '/elsewhere', ...headers }, body: '' };
  if (fault.kind === 'body') return { ...answer, body: fault.body ?? '' };
  if (fault.kind === 'empty') return { ...answer, body: '' };
  if (fault.kind === 'truncated') return { ...answer, body: answer.body.slice(0, answer.body.length / 2) };
  return { ...answer, body: oversizedBody };
}

const codes: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'NOT_IMPLEMENTED',
  503: 'UNAVAILABLE',
};

function statusAnswer(status: number, headers: Record<string, string>, body: string | undefined): FakeAnswer {
  if (body !== undefined) return { status, headers, body };
  if (status === 401) return json(401, { errors: [{ code: 0, message: 'Invalid API Key' }] }, headers);
  return json(status, { code: codes[status] ?? 'UNKNOWN', message: 'A fault of the fake.' }, headers);
}
