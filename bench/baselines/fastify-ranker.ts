import Fastify from 'fastify';
import { deadlineIn, systemClock } from '../../src/clock.ts';
import { OpenCloudPlatform } from '../../src/platforms/open-cloud.ts';
import { group, roleIdOf } from '../group.ts';

/** Bare Fastify that makes the platform calls of a change through rankd's own client: no store, no checks. First argument: the platform's address. */
const baseUrl = process.argv[2] ?? '';
const clock = systemClock;
const platform = new OpenCloudPlatform({ groupId: group.id, apiKey: 'bench', baseUrl, legacyBaseUrl: baseUrl, clock });

const server = Fastify();
server.post<{ Body: { rankeeId: number } }>('/v1/ranker', async ({ body: { rankeeId: userId } }) => {
  using deadline = deadlineIn(clock, 20_000);
  const call = { signal: deadline.signal, deadlineAt: deadline.at, lane: 'bench' };
  await platform.getMember(userId, call);
  await platform.assignRole({ userId, roleId: roleIdOf(group.officer) }, call);
  await platform.unassignRole({ userId, roleId: roleIdOf(group.trainee) }, call);
  return { success: true, message: `${userId} is now Rank 20`, rankeeId: userId, newRankId: group.officer };
});
const url = await server.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ url })}\n`);
