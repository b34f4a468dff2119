import { fsyncSync, openSync, writeSync } from 'node:fs';
import Fastify from 'fastify';
import { deadlineIn, systemClock } from '../../src/base/clock.ts';
import { OpenCloudPlatform } from '../../src/platforms/open-cloud.ts';
import { group, roleIdOf } from '../group.ts';

/**
 * A bare Fastify server that makes the platform calls of a rank change through rankd's own client, without a store or
 * checks. Arguments: the platform's URL and, optionally, the path of a file. With a file, each change also writes one
 * page to it and syncs it, twice, because rankd syncs twice for a durable change.
 */
const [baseUrl = '', file] = process.argv.slice(2);
const clock = systemClock;
const platform = new OpenCloudPlatform({
  groupId: group.id,
  apiKey: 'bench',
  baseUrl,
  legacyBaseUrl: baseUrl,
  usersBaseUrl: baseUrl,
  developBaseUrl: baseUrl,
  clock,
});
const waitForDisk = file === undefined ? () => undefined : pageWriter(file);

const server = Fastify();
server.post<{ Body: { rankeeId: number } }>('/v1/ranker', async ({ body: { rankeeId: userId } }) => {
  using deadline = deadlineIn(clock, 20_000);
  const call = { signal: deadline.signal, deadlineAt: deadline.at, lane: 'bench' };
  await platform.getMember(userId, call);
  waitForDisk();
  await platform.assignRole({ userId, roleId: roleIdOf(group.officer) }, call);
  await platform.unassignRole({ userId, roleId: roleIdOf(group.trainee) }, call);
  waitForDisk();
  return { success: true, message: `${userId} is now Rank 20`, rankeeId: userId, newRankId: group.officer };
});
const url = await server.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ url })}\n`);

/** Returns a function that overwrites one page, as SQLite does in its log, and waits until it is on disk. */
function pageWriter(path: string): () => void {
  const open = openSync(path, 'w');
  const page = Buffer.alloc(4096);
  return () => {
    writeSync(open, page, 0, page.length, 0);
    fsyncSync(open);
  };
}
