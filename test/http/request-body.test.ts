import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { readBody } from '../../src/http/request-body.ts';

test('a body that is too large is reported once, even if more of it arrives', async () => {
  const request = new IncomingMessage(new Socket());
  const then = vi.fn();
  readBody(request, then);
  await nextTurn();
  for (let chunk = 0; chunk < 4; chunk += 1) {
    request.push(Buffer.alloc(40_000));
    await nextTurn();
  }
  request.destroy(new Error('reset'));
  await nextTurn();
  expect(then.mock.calls).toEqual([[expect.objectContaining({ code: 'body_too_large' })]]);
});
