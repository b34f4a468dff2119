import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { RankdError } from '../../base/errors.ts';
import { callWithin } from '../../ports/call-context.ts';
import type { LiveContext } from '../../usecases/daemon-context.ts';
import type { healthAnswer, readyAnswer } from '../answers.ts';

const readyWithinMs = 3_000;

/** GET /healthz: the process answers. GET /readyz: it can change ranks, because store, platform and credential work and it is not stopping. */
export function healthRoutes(server: FastifyInstance, live: LiveContext): void {
  server.get('/healthz', async (request): Promise<z.infer<typeof healthAnswer>> => {
    request.notes.level = 'debug'; // monitoring asks every few seconds
    return { status: 'ok' };
  });
  server.get('/readyz', async (request): Promise<z.infer<typeof readyAnswer>> => {
    request.notes.level = 'debug';
    const app = live.current;
    if (app.requests.isDraining)
      throw new RankdError('shutting_down', 'rankd is stopping or restarting.', { retryAfterMs: 5_000 });
    const dead = app.deadCredential();
    if (dead !== undefined) throw dead;
    await app.store.pingWrites();
    using call = callWithin(app.clock, readyWithinMs, 'health');
    await Promise.all([app.group.scheme(call), app.group.acting(call)]);
    return { status: 'ready' };
  });
}
