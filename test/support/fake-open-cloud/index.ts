import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '../../../src/base/clock.ts';
import type { Clock } from '../../../src/ports/index.ts';
import { type FakeAnswer, json, Refused } from './answers.ts';
import { Budgets, documentedLimits, type Limits } from './budgets.ts';
import type { FakeCredential } from './credential.ts';
import { Faults } from './faults.ts';
import { GroupState } from './group-state.ts';
import { Journal, type JournalEntry } from './journal.ts';
import { carryOut, type World } from './operations.ts';
import { type FakeHost, type FakeRequest, parseRequest } from './routes.ts';
import { type GroupAge, sampleGroup, sampleNames, sampleUsers } from './sample.ts';
import { deliver, readBody } from './transport.ts';

export type { FakeCredential } from './credential.ts';
export type { Fault, FaultKind } from './faults.ts';
export type { FakeRole } from './group-state.ts';
export type { JournalEntry, Operation } from './journal.ts';
export { sampleRoles, sampleUsers } from './sample.ts';

export interface FakeOpenCloudOptions {
  groupId?: number;
  /** `old` by default, like most groups. */
  age?: GroupAge;
  apiKey?: string;
  /** By default, Roblox's documented limits. */
  limits?: Limits;
  windowMs?: number;
  lagMs?: number;
  latencyMs?: number;
  /** The clock for everything that the fake times; the real one by default. */
  clock?: Pick<Clock, 'now' | 'monotonic' | 'sleep'>;
  /** The longest delay until the fake notices that a client has given up; 250 by default. */
  hangUpMs?: number;
  /** The port of the Open Cloud host. 0, the default for all hosts, means any free port. */
  port?: number;
  legacyPort?: number;
  usersPort?: number;
  developPort?: number;
}

/**
 * A running fake: its controls, its state and the URLs of its four hosts. It has all options that `OpenCloudPlatform`
 * requires, except the clock.
 */
export interface FakeOpenCloud extends World {
  baseUrl: string;
  legacyBaseUrl: string;
  usersBaseUrl: string;
  developBaseUrl: string;
  apiKey: string;
  groupId: number;
  faults: Faults;
  latencyMs: number;
  /** Returns the mistakes so far that a careful client would not have made. */
  violations(): string[];
  /** From now on, a write that leaves this member with only the base role is a violation. */
  expectNeverWithoutRole(userId: number): void;
  /** From now on, every write is a violation; with `userId`, only writes for that member are. */
  expectNoWrites(userId?: number): void;
  close(): Promise<void>;
}

/** Starts a stateful and strict fake of the Open Cloud operations that rankd uses, with a sample group. */
export async function startFakeOpenCloud(options: FakeOpenCloudOptions = {}): Promise<FakeOpenCloud> {
  const {
    groupId = 700,
    age = 'old',
    apiKey = 'ZmFrZS1vcGVuLWNsb3VkLWtleS1vZi0xMDAx',
    latencyMs = 0,
    lagMs = 0,
    windowMs = 60_000,
  } = options;
  const clock = options.clock ?? systemClock;
  const now = () => clock.monotonic();
  const world: FakeWorld = {
    group: new GroupState(sampleGroup(groupId, age), () => clock.now()),
    credential: fullCredential(apiKey, age),
    budgets: new Budgets({ limits: options.limits ?? documentedLimits, windowMs, now }),
    journal: new Journal({ hangUpMs: options.hangUpMs ?? 250 }),
    faults: new Faults(),
    now,
    sleep: (ms) => clock.sleep(ms),
    lagMs,
    latencyMs,
    rolesBehind: {},
    rolesField: 'withoutBase',
    acceptsWritesWithoutScope: false,
    writesOnlyEcho: false,
    assignReplaces: false,
    membershipLock: undefined,
    writeAnswer: 'membership',
    addedFields: {},
    removedFields: [],
    endsWithEmptyToken: true,
    pagesRepeat: false,
    hasPublicRoles: true,
    migration: 'NotMigrated',
    users: sampleNames(),
    experiences: {},
  };
  const openCloud = await listen(world, 'openCloud', options.port ?? 0);
  const legacy = await listen(world, 'legacy', options.legacyPort ?? 0);
  const users = await listen(world, 'users', options.usersPort ?? 0);
  const develop = await listen(world, 'develop', options.developPort ?? 0);
  return Object.assign(world, {
    baseUrl: urlOf(openCloud),
    legacyBaseUrl: urlOf(legacy),
    usersBaseUrl: urlOf(users),
    developBaseUrl: urlOf(develop),
    apiKey,
    groupId,
    violations: () => world.journal.violations(),
    expectNeverWithoutRole: (userId: number) => world.journal.expectNeverWithoutRole(userId),
    expectNoWrites: (userId?: number) => world.journal.expectNoWrites(userId),
    close: async () => {
      await Promise.all([openCloud, legacy, users, develop].map(stop));
    },
  });
}

/**
 * Returns a credential that may read and write groups. Roblox's introspection has never listed `groupIds` for the scope
 * `group`, but Roblox's documents list them for other scopes, so the fake lists them for a new group.
 */
function fullCredential(apiKey: string, age: GroupAge): FakeCredential {
  const group = { name: 'group', operations: ['read', 'write'] };
  const scopes = [age === 'new' ? { ...group, groupIds: ['*'] } : group];
  return { apiKey, userId: sampleUsers.actor, enabled: true, expired: false, scopes };
}

async function listen(world: FakeWorld, host: FakeHost, port: number): Promise<Server> {
  const server = createServer((request, response) => {
    void serve(world, host, request, response).catch((error) => response.destroy(error));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  return server;
}

interface FakeWorld extends World {
  faults: Faults;
  latencyMs: number;
  sleep(ms: number): Promise<void>;
}

async function serve(
  world: FakeWorld,
  host: FakeHost,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = '', url = '', headers } = incoming;
  const request = parseRequest({ host, method, url, headers, body: await readBody(incoming) });
  const entry = journalEntry(request, url, world.now());
  world.journal.begin(entry);
  const end = () => {
    entry.endedAt ??= world.now();
  };
  if (response.destroyed) end();
  else response.once('close', end);
  if (world.latencyMs > 0) await world.sleep(world.latencyMs);
  const fault = world.faults.take(entry);
  const isSlow = fault?.kind === 'slow';
  if (isSlow && fault.when !== 'after') await world.sleep(fault.delayMs ?? 0);
  const isSkipped = fault !== undefined && !isSlow && fault.when !== 'after';
  const answer = isSkipped ? json(200, {}) : answerTo(world, request, entry);
  if (isSlow && fault.when === 'after') await world.sleep(fault.delayMs ?? 0);
  if (!response.destroyed) entry.status = deliver(response, answer, fault);
  if (entry.status !== 0) end();
}

function answerTo(world: World, request: FakeRequest, entry: JournalEntry): FakeAnswer {
  try {
    return carryOut(world, request, entry);
  } catch (error) {
    if (error instanceof Refused) return error.answer;
    throw error;
  }
}

function journalEntry(
  { operation, method, headers, userId, rolePath }: FakeRequest,
  path: string,
  at: number,
): JournalEntry {
  const [, roleId] = /\/roles\/(\d+)$/.exec(String(rolePath)) ?? [];
  return {
    operation,
    method,
    path,
    headers,
    ...(userId === undefined ? {} : { userId }),
    ...(roleId === undefined ? {} : { roleId: Number(roleId) }),
    at,
    status: 0,
    applied: false,
  };
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
