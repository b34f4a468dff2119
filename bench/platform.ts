import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { group, roleIdOf } from './group.ts';

/**
 * A fake Roblox with almost no overhead. After `latencyMs` (the first argument), it responds to each API call that a
 * rank change makes. It treats every user as a member, and has rate limits that no load reaches.
 */
const latencyMs = Number(process.argv[2] ?? 0);
const actingUser = 7;
const ranks = [group.base, group.trainee, group.officer, group.leader];
const rolePath = (rank: number) => `groups/${group.id}/roles/${roleIdOf(rank)}`;
/** The ranks of the members changed so far. All other users are trainees, except the acting account. */
const held = new Map<number, Set<number>>();

/** The number of calls allowed per second: more than any load makes, and the highest limit that rankd tracks. */
const limit = 10_000;
let windowEndsAt = 0;
let remaining = limit;

/**
 * Returns Open Cloud's rate limit headers. All operations share one counter, so the remainder that it reports is a
 * lower bound for each operation.
 */
function budgetHeaders(): Record<string, string> {
  const now = performance.now();
  if (now >= windowEndsAt) {
    windowEndsAt = now + 1_000;
    remaining = limit;
  }
  remaining = Math.max(1_000, remaining - 1);
  return {
    'content-type': 'application/json',
    'x-ratelimit-limit': `${limit}, ${limit};w=1`,
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': '1',
  };
}

const server = createServer((request, response) => {
  const answered = request.method === 'GET' ? read(request) : write(request);
  void answered.then((body) => {
    response.writeHead(200, budgetHeaders());
    response.end(JSON.stringify(body));
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
});

async function read({ url = '' }: IncomingMessage): Promise<unknown> {
  if (latencyMs > 0) await delay(latencyMs);
  const user = /users%2F(\d+)/.exec(url)?.[1];
  if (user !== undefined) return { groupMemberships: [membership(Number(user))] };
  if (url.startsWith('/v1/'))
    return { roles: ranks.map((rank) => ({ id: roleIdOf(rank), isBase: rank === group.base })) };
  const role = /\/roles\/(\d+)/.exec(url)?.[1];
  if (role !== undefined) return roleOf(Number(role) - roleIdOf(0));
  if (url.includes('/roles')) return { groupRoles: ranks.map(roleOf) };
  return { id: String(group.id), displayName: 'Bench', memberCount: 1_000_000, owner: 'users/1' };
}

function roleOf(rank: number): unknown {
  return { id: String(roleIdOf(rank)), displayName: `Rank ${rank}`, rank };
}

async function write(request: IncomingMessage): Promise<unknown> {
  const body = JSON.parse(await text(request)) as { role?: string };
  if (latencyMs > 0) await delay(latencyMs);
  const [, user, verb] = /memberships\/(\d+):(assign|unassign)Role$/.exec(request.url ?? '') ?? [];
  if (user === undefined) return { enabled: true, expired: false, authorizedUserId: actingUser };
  const rank = Number(body.role?.split('/').at(-1)) - roleIdOf(0);
  const ranksHeld = held.get(Number(user)) ?? new Set([group.trainee]);
  if (verb === 'assign') ranksHeld.add(rank);
  else ranksHeld.delete(rank);
  held.set(Number(user), ranksHeld);
  return membership(Number(user));
}

function membership(userId: number): unknown {
  const ranksHeld = [...(userId === actingUser ? [group.leader] : (held.get(userId) ?? [group.trainee]))];
  const roles = ranksHeld.map(rolePath);
  return { user: `users/${userId}`, role: rolePath(Math.max(group.base, ...ranksHeld)), roles };
}
