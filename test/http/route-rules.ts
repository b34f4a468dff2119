import type { Config } from '../../src/config/config.ts';
import type { KeyRules, Scope } from '../../src/core/model.ts';
import type { ConfigOverrides } from '../support/open-test-app.ts';
import { table } from '../support/reference-tables.ts';

const [trainee, officer, captain, admin] = [10, 20, 50, 200];

/** A route that can change a rank with a key. Each request gives or takes the role Captain. */
export interface KeyRoute {
  /** The path as the server registers it. */
  url: string;
  /** The rank of the member's initial role, unless a hold has given a different one. */
  from: number;
  to: number;
  /** The member's initial hold: a suspension started with a different key, or a temporary rank from the operator. */
  during?: { kind: 'suspension' | 'temporary'; rank: number };
  scope: Scope;
  /** The header with the key; by default, the key is a bearer token. */
  header?: string;
  /** The slash command. The person who runs it has a Discord role with the key. */
  command?: string;
  body: (member: number) => Record<string, unknown>;
  /** True if the request gives or takes the role as an extra role, which needs a ladder. */
  isAlongside?: boolean;
}

const byId = (robloxUserId: number) => ({ robloxUserId });
const added = { from: trainee, to: captain, scope: 'roles', isAlongside: true } as const;
const removed = { from: captain, to: 1, scope: 'roles', isAlongside: true } as const;
const rankgun = (userId: number) => ({ userId });
const up = { from: officer, to: captain, scope: 'rank' } as const;
const down = { from: captain, to: officer, scope: 'rank' } as const;
const away = { from: captain, to: 1, scope: 'suspend' } as const;
const back = { ...away, to: captain, during: { kind: 'suspension', rank: 1 } } as const;
const noblox = '/group/:group/member/:user';

function inDiscord(
  command: string,
  rest: Pick<KeyRoute, 'from' | 'to' | 'during' | 'scope' | 'isAlongside'>,
  options = {},
): KeyRoute {
  return { url: '/discord/interactions', command, ...rest, body: (member) => ({ user: String(member), ...options }) };
}

export const keyRoutes: readonly KeyRoute[] = [
  {
    ...{ url: '/v1/ranker', ...up },
    body: (rankeeId) => ({ rankeeId, rankeeName: '', rankerId: 0, rankerName: '', newRankId: captain }),
  },
  { url: '/v2/rank', ...up, body: (member) => ({ ...byId(member), rank: captain }) },
  {
    ...{ url: '/v2/rank', from: trainee, to: captain, during: { kind: 'temporary', rank: officer }, scope: 'rank' },
    body: (member) => ({ ...byId(member), rank: captain }),
  },
  { url: '/v2/promote', ...up, body: byId },
  { url: '/v2/demote', ...down, body: byId },
  {
    ...{ url: '/v2/suspend', ...away },
    body: (member) => ({ ...byId(member), duration: '1h' }),
  },
  {
    ...{ url: '/v2/suspend', ...away, during: { kind: 'temporary', rank: officer } },
    body: (member) => ({ ...byId(member), duration: '1h' }),
  },
  { url: '/v2/unsuspend', ...back, body: byId },
  { url: '/v2/roles/add', ...added, body: (member) => ({ ...byId(member), role: captain }) },
  { url: '/v2/roles/remove', ...removed, body: (member) => ({ ...byId(member), role: captain }) },
  { url: `${noblox}/rank`, ...up, header: 'authorization', body: () => ({ rank: captain }) },
  { url: `${noblox}/rank-change`, ...up, header: 'authorization', body: () => ({ change: 1 }) },
  ...['/api/roblox', '/roblox'].flatMap((at): KeyRoute[] => [
    {
      ...{ url: at === '/roblox' ? '/roblox/set-rank' : '/api/roblox/setrank', ...up, header: 'api-token' },
      body: (member) => ({ ...rankgun(member), rank: captain }),
    },
    { url: `${at}/promote`, ...up, header: 'api-token', body: rankgun },
    { url: `${at}/demote`, ...down, header: 'api-token', body: rankgun },
  ]),
  inDiscord('setrank', up, { rank: String(captain) }),
  inDiscord('promote', up),
  inDiscord('demote', down),
  inDiscord('role', added, { action: 'add', role: String(captain) }),
  inDiscord('role', removed, { action: 'remove', role: String(captain) }),
  inDiscord('suspend', away, { duration: '1h' }),
  inDiscord('unsuspend', back),
];

const isInDiscord = ({ command }: KeyRoute) => command !== undefined;
/** True for rankd's own routes, whose requests can name a ranker. */
const namesRanker = (route: KeyRoute) => route.url.startsWith('/v') || isInDiscord(route);
const isReturn = ({ url, command }: KeyRoute) => url === '/v2/unsuspend' || command === 'unsuspend';
const isSuspension = ({ url, command }: KeyRoute) => url === '/v2/suspend' || command === 'suspend';
const isPromotion = (route: KeyRoute) => isReturn(route) || (!isSuspension(route) && route.to > route.from);
/** True for a step, which always leads to the next rank. */
const isStep = ({ url, command = url }: KeyRoute) => /promote|demote|change/.test(command);

/** A rule that forbids changes, the situation in which it applies, and each route's response. */
export interface RouteRule {
  key?: (route: KeyRoute) => {
    rules?: KeyRules;
    scopes?: Scope[];
    mode?: 'test';
    places?: number[];
    expiresAt?: number;
  };
  /** A change to the key or the workspace before the request. */
  first?: 'revoke' | 'pause' | 'suspend the workspace';
  policy?: Partial<Config['policy']>;
  ranker?: 'the member' | 'an Officer';
  /** A recent change to the same member, or to a different one by the same ranker or with the same key. */
  before?: 'the member was changed' | 'the ranker changed another' | 'the key changed another';
  /** The rank of the member's role at the time of the request, instead of the route's initial one. */
  holding?: number;
  member?: 'the owner' | 'suspended by the operator';
  /**
   * The response's code, or `done` for a 200 without a change. `none` is the reason why the rule does not apply to the
   * route.
   */
  answer: (route: KeyRoute) => string | { none: string };
}

const always = (code: string) => () => code;
const notAllowed = always('rank_not_allowed');
const anonymous = { none: 'names no ranker' };

export const routeRules: Record<string, RouteRule> = {
  scope: {
    key: ({ scope }) => ({ scopes: ['verify', scope === 'rank' ? 'suspend' : 'rank'] }),
    answer: always('key_not_allowed'),
  },
  whitelist: {
    key: () => ({ places: [7] }),
    answer: (route) => (isInDiscord(route) ? { none: 'is no place' } : 'place_not_whitelisted'),
  },
  expired: { key: () => ({ expiresAt: Date.now() + 1 }), answer: always('invalid_key') },
  revoked: { first: 'revoke', answer: always('invalid_key') },
  paused: { first: 'pause', answer: always('key_paused') },
  workspace: { first: 'suspend the workspace', answer: always('invalid_key') },
  'test key': { key: () => ({ mode: 'test' }), answer: always('done') },
  ceiling: { key: () => ({ rules: { maxRank: officer } }), answer: notAllowed },
  floor: { key: () => ({ rules: { minRank: captain + 1 } }), answer: notAllowed },
  'locked roles': {
    policy: { lockedRoles: [captain, admin] },
    answer: (route) => (isStep(route) && isPromotion(route) ? 'no_further_rank' : 'rank_not_allowed'),
  },
  'privileged roles': { policy: { privilegedRoles: [captain] }, answer: notAllowed },
  'protected members': { policy: { protectedMembers: [1001] }, answer: always('member_protected') },
  direction: {
    key: (route) => ({ rules: { direction: isPromotion(route) ? 'demote' : 'promote' } }),
    answer: always('key_not_allowed'),
  },
  steps: {
    policy: { steps: 'adjacent' },
    holding: trainee,
    answer: (route) => {
      if (isSuspension(route) || isReturn(route)) return { none: 'takes or gives all roles' };
      if (route.isAlongside) return { none: 'leaves the rank' };
      return isStep(route) ? { none: 'is one step' } : 'rank_not_allowed';
    },
  },
  reason: { policy: { reason: 'required' }, answer: always('reason_required') },
  'self-rank': {
    ...{ key: () => ({ rules: { selfRank: 'deny' } }), ranker: 'the member' },
    answer: (route) => (namesRanker(route) ? 'ranker_not_allowed' : anonymous),
  },
  ranker: { policy: { rankerCheck: 'claimed' }, answer: always('ranker_not_allowed') },
  'ranker rank': { policy: { rankerCheck: 'verify' }, ranker: 'an Officer', answer: always('ranker_not_allowed') },
  cooldown: {
    policy: { cooldowns: [{ from: 0, forMs: 600_000 }] },
    before: 'the member was changed',
    answer: always('cooldown'),
  },
  'ranker cooldown': {
    ...{ policy: { rankerCooldownMs: 600_000 }, ranker: 'an Officer', before: 'the ranker changed another' },
    answer: (route) => (namesRanker(route) ? 'cooldown' : anonymous),
  },
  breaker: {
    policy: { breaker: { enabled: true, demotions: 1, highRank: captain, highChanges: 1, windowMs: 600_000 } },
    before: 'the key changed another',
    answer: always('key_paused'),
  },
  suspension: {
    member: 'suspended by the operator',
    answer: (route) =>
      isReturn(route) ? 'suspended_by_operator' : isSuspension(route) ? 'already_suspended' : 'member_suspended',
  },
  'acting account': {
    member: 'the owner',
    answer: (route) => (isReturn(route) ? 'not_suspended' : 'above_acting_account'),
  },
};

export function routeTitle({ url, command, during, body }: KeyRoute): string {
  const { action } = body(0);
  if (command !== undefined) return `/${command}${action === undefined ? '' : ` ${action}`} on Discord`;
  return during?.kind === 'temporary' ? `${url}, for a member with a temporary rank` : url;
}

/** Returns the table in SECURITY.md. */
export function routeRuleTable(): string[] {
  const rules = Object.values(routeRules);
  const cell = (answer: ReturnType<RouteRule['answer']>) =>
    typeof answer === 'object' ? answer.none : answer === 'done' ? 'changes nothing' : answer;
  const rows = keyRoutes.map((route) => [
    `\`${routeTitle(route)}\``,
    ...rules.map(({ answer }) => cell(answer(route))),
  ]);
  return table(['route', ...Object.keys(routeRules)], rows);
}

export function configFor({ policy = {} }: RouteRule, isAlongside: boolean): ConfigOverrides {
  const breaker = { enabled: false, demotions: 10, highRank: undefined, highChanges: 5, windowMs: 600_000 };
  const group = { ladder: isAlongside ? [trainee, officer] : undefined, rankOne: 'custom' as const };
  return { group, policy: { breaker, ...policy }, compat: ['rankgun', 'noblox-server'] };
}
