import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { callWithin } from '../../clock.ts';
import { RankdError } from '../../errors.ts';
import type { healthAnswer, readyAnswer } from '../answers.ts';
import type { HttpApp } from '../server.ts';

const readyWithinMs = 3_000;

/** GET /healthz: the process answers. GET /readyz: it can change ranks: store, platform and credential answer, not draining. */
export function healthRoutes(server: FastifyInstance, app: HttpApp): void {
  server.get('/healthz', async (request): Promise<z.infer<typeof healthAnswer>> => {
    request.notes.level = 'debug'; // asked every few seconds
    return { status: 'ok' };
  });
  server.get('/readyz', async (request): Promise<z.infer<typeof readyAnswer>> => {
    request.notes.level = 'debug';
    if (app.isDraining)
      throw new RankdError('shutting_down', 'rankd is stopping or restarting.', { retryAfterMs: 5_000 });
    const dead = app.deadCredential();
    if (dead !== undefined) throw dead;
    await app.store.pingWrites();
    using call = callWithin(app.clock, readyWithinMs, 'health');
    await Promise.all([app.group.scheme(call), app.group.acting(call)]);
    return { status: 'ready' };
  });
}
