import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
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
  const prove = ({ headers }: FastifyRequest, reply: FastifyReply) => {
    const { [questionHeader]: question, authorization } = headers;
    const proof = proofOf(live.current.identity, { question, authorization });
    if (proof !== undefined) reply.header(proofHeader, proof);
  };
  server.get('/healthz', async (request, reply): Promise<z.infer<typeof healthAnswer>> => {
    request.notes.level = 'debug'; // monitoring asks every few seconds
    prove(request, reply);
    return { status: 'ok' };
  });
  server.get('/readyz', async (request, reply): Promise<z.infer<typeof readyAnswer>> => {
    request.notes.level = 'debug';
    prove(request, reply);
    const app = live.current;
    using call = callWithin(app.clock, readyWithinMs, 'health');
    await requireReady(app, call);
    const misfits = app.group.misfits?.map(({ message }) => message) ?? [];
    return {
      status: 'ready',
      ...(isSimulatedGroup(app.group.title) && { simulated: true }),
      ...(misfits.length > 0 && { misfits }),
    };
  });
}
