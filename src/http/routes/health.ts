import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { isSimulatedGroup } from '../../core/group-title.ts';
import { proofHeader, proofOf, questionHeader } from '../../core/proof.ts';
import { callWithin } from '../../ports/call-context.ts';
import type { LiveContext } from '../../usecases/daemon-context.ts';
import { requireReady } from '../../usecases/upkeep/readiness.ts';
import type { healthAnswer, readyAnswer } from '../answers.ts';

const readyWithinMs = 3_000;

/** GET /healthz: the process answers. GET /readyz: it can change ranks, because store, platform and credential work and it is not stopping. */
export function healthRoutes(server: FastifyInstance, live: LiveContext): void {
  server.get('/healthz', async (request, reply): Promise<z.infer<typeof healthAnswer>> => {
    request.notes.level = 'debug'; // monitoring asks every few seconds
    const proof = proofOf(live.current.identity, {
      question: request.headers[questionHeader],
      authorization: request.headers.authorization,
    });
    if (proof !== undefined) reply.header(proofHeader, proof);
    return { status: 'ok' };
  });
  server.get('/readyz', async (request): Promise<z.infer<typeof readyAnswer>> => {
    request.notes.level = 'debug';
    const app = live.current;
    using call = callWithin(app.clock, readyWithinMs, 'health');
    await requireReady(app, call);
    return { status: 'ready', ...(isSimulatedGroup(app.group.title) && { simulated: true }) };
  });
}
