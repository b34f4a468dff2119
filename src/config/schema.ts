import * as z from 'zod';
import { isRank, type RoleName } from '../core/role-name.ts';
import { maxWebhooks } from '../core/webhooks/webhook.ts';
import { type DeclaredKeySettings, declaredKey } from './declared-key-schema.ts';
import { type DeclaredWebhookSettings, declaredWebhook } from './declared-webhook-schema.ts';
import {
  duration,
  filePath,
  host,
  id,
  ids,
  network,
  oneOf,
  optionalDuration,
  optionalUrl,
  origin,
  rankOrName,
  role,
  roles,
  section,
  unique,
  url,
  whole,
  wordOrRoles,
} from './values.ts';

const dashboardPort = 7266;

/**
 * Every setting of `rankd.yaml`, with its default and what it does. The message of each check says what is expected; the report
 * adds what was found, and where.
 */
export const settingsSchema = section({
  group: section({
    id: id().optional().describe('The one group this daemon ranks in; needed with open-cloud.'),
    ladder: roles()
      .min(1, { error: 'at least one role' })
      .refine((entries) => twiceIn(entries) === undefined, {
        error: ({ input }) => `a list that names nothing twice; it names ${twiceIn(input as RoleName[])} twice`,
      })
      .optional()
      .describe(
        'Ranks, role ids or role names that form the promotion ladder; without it, all roles count by their rank.',
      ),
    rank_1: oneOf(['custom', 'base'])
      .default('custom')
      .describe('What rank 1 means if a role of yours shares it with the base role: yours (custom), or the base role.'),
  }),
  platform: section({
    kind: oneOf(['open-cloud', 'simulated'])
      .optional()
      .describe('open-cloud, or simulated to try things out; without it, open-cloud where group.id is set.'),
    api_key_file: filePath()
      .optional()
      .describe(
        'File with the Roblox key, an Open Cloud API key (scope group:write), readable by rankd alone; or RANKD_PLATFORM_API_KEY.',
      ),
    base_url: url('https://apis.roblox.com').describe('Where the Open Cloud API is.'),
    legacy_base_url: url('https://groups.roblox.com').describe(
      'Where the public role list is, which tells the base role.',
    ),
    users_base_url: url('https://users.roblox.com').describe('Where user names are looked up, without a key.'),
    group_file: filePath().optional().describe('YAML file with the group to simulate, instead of the built-in one.'),
  }),
  server: section({
    host: host()
      .default('127.0.0.1')
      .describe('Address to listen on; keep it on loopback behind a reverse proxy that speaks TLS.'),
    port: whole(0, 65_535)
      .default(7265)
      .describe('Port to listen on, 0 for any free one; games reach 80, 443 and 1024 up, except 1194.'),
    public_url: optionalUrl().describe(
      'Where games reach rankd, such as https://rankd.example.com; it stands in the files for the game that rankd writes.',
    ),
    deadline: duration('20s', { min: '1s', max: '5m' }).describe(
      'Every answer is given within this time; games were seen to give up after about 30 s.',
    ),
    max_connections: whole(1, 1_000_000)
      .default(1000)
      .describe(
        'Connections that may be open at once, a quarter of them from one address; if there is no room, the slowest are ended.',
      ),
    trusted_proxies: z
      .array(network(), { error: 'a list of addresses or networks' })
      .default(['127.0.0.0/8', '::1'])
      .describe('Reverse proxies whose X-Forwarded-For is believed: addresses, or networks such as 10.0.0.0/8.'),
  }),
  policy: section({
    min_rank: rankOrName()
      .default(1)
      .describe(
        'No rank below this (rank or role name) is ever given or taken, and no member below it is changed; base members have 1.',
      ),
    max_rank: rankOrName()
      .default(254)
      .describe('No rank above this (rank or role name) is ever given or taken, whatever the key.'),
    locked_roles: roles().default([]).describe('Ranks, role ids or role names that are never given or taken.'),
    privileged_roles: wordOrRoles(['allow', 'operator'])
      .default('allow')
      .describe(
        'Roles with power over others: allow; operator: no game gives or takes them; or a list that names more of them.',
      ),
    protected_members: ids().default([]).describe('User ids whose rank is never changed.'),
    protected_roles: roles().default([]).describe('Ranks, role ids or role names whose holders are never changed.'),
    steps: oneOf(['any', 'adjacent'])
      .default('any')
      .describe(
        'any, or adjacent: only to the next rank up or down (of the ladder, if there is one), locked ones aside.',
      ),
    self_rank: oneOf(['allow', 'deny']).default('allow').describe('Whether a player may change their own rank.'),
    ranker_check: oneOf(['off', 'claimed', 'verify'])
      .default('off')
      .describe('off; claimed: the ranker must be a named other player; verify: and rank above, as read from Roblox.'),
    min_ranker_rank: whole(1, 255).default(1).describe('With ranker_check verify: the least rank a ranker needs.'),
    cooldown: duration('0s', { min: '0s', max: '30d', example: '30s' }).describe(
      'Least time between two changes of one member; 0s for none.',
    ),
    ranker_cooldown: duration('0s', { min: '0s', max: '30d', example: '30s' }).describe(
      'Least time between two changes by one ranker; 0s for none.',
    ),
    breaker: section({
      enabled: z
        .boolean({ error: 'true or false' })
        .default(true)
        .describe('Pauses a key that changes many members in a short time.'),
      demotions: whole(1, 1_000_000)
        .default(10)
        .describe('How many different members one key may demote per window; three times that over all keys.'),
      high_rank: whole(1, 254)
        .optional()
        .describe(
          'Also counts every change of a member who holds, or is to hold, this rank or one above; without it, a privileged role.',
        ),
      high_changes: whole(1, 1_000_000)
        .default(5)
        .describe(
          'How many different members so counted one key may change per window; three times that over all keys.',
        ),
      window: duration('10m', { min: '1s', max: '30d' }).describe('The time over which changes are counted.'),
    }),
    suspension: section({
      role: role()
        .optional()
        .describe(
          'Rank, role id or role name that members hold while they are suspended; without it, none but the base role.',
        ),
      max: duration('365d', { min: '1m', max: '36500d' }).describe(
        'The longest that a suspension or a temporary rank may last.',
      ),
    }),
  }).check(({ value, issues }) => {
    if (issues.length > 0 || !isRank(value.min_rank) || !isRank(value.max_rank)) return; // else the roles tell
    if (value.min_rank <= value.max_rank) return;
    const message = `a rank up to policy.max_rank, which is ${value.max_rank}`;
    issues.push({ code: 'custom', path: ['min_rank'], input: value.min_rank, message });
  }),
  security: section({
    roblox_id: oneOf(['off', 'warn', 'enforce'])
      .default('off')
      .describe(
        'Whether Roblox-Id, which Roblox adds, must be the placeid sent; enforce needs place ids, not universe ids.',
      ),
  }),
  limits: section({
    rank: whole(0, 1_000_000).default(600).describe('Rank changes per key and minute; 0 turns the limit off.'),
    rank_burst: whole(0, 1_000_000)
      .default(300)
      .describe('Rank changes of one key that may come at once; 0 turns this limit off.'),
    verify: whole(0, 1_000_000).default(3000).describe('Key verifications per key and minute; 0 turns the limit off.'),
    place: whole(0, 1_000_000)
      .default(0)
      .describe('Rank changes per place and minute, within those of its key; 0 turns the limit off.'),
    failed_auth: whole(0, 1_000_000)
      .default(60)
      .describe(
        'Requests a minute without an accepted key, per address, or for places not whitelisted, per key; 0 turns it off.',
      ),
  }),
  metrics: section({
    enabled: z
      .boolean({ error: 'true or false' })
      .default(false)
      .describe('Whether metrics for Prometheus are served.'),
    host: host().default('127.0.0.1').describe('Address of the listener for metrics, which asks nobody for a key.'),
    port: whole(0, 65_535).default(9265).describe('Port of the listener for metrics, 0 for any free one.'),
  }),
  dashboard: section({
    enabled: z
      .boolean({ error: 'true or false' })
      .default(false)
      .describe('Whether the page for the operator is always there; without it, from `rankd dashboard` on.'),
    host: host().default('127.0.0.1').describe('Address of the page; any but loopback needs dashboard.url.'),
    port: whole(0, 65_535)
      .default(dashboardPort)
      .describe('Port of the page, 0 for any free one; if another program has it, the next free one is taken.'),
    url: origin()
      .optional()
      .describe('Where browsers reach the page: the https address of a proxy, or http://127.0.0.1:PORT of a tunnel.'),
  }).check(({ value, issues }) => {
    if (issues.length > 0 || value.url !== undefined || isLoopbackHost(value.host)) return;
    const message =
      'an address of this machine alone, as the page is plain http; to reach it from elsewhere, leave dashboard.host as it is and use `ssh -L 7266:127.0.0.1:7266 THIS-MACHINE`, or put a proxy with TLS in front and set dashboard.url to its https address';
    issues.push({ code: 'custom', path: ['host'], input: value.host, message });
  }),
  history: section({
    keep: optionalDuration({ min: '1d', max: '36500d' }).describe(
      'How long rank changes are kept, and at least as long as cooldowns and the breaker need; without it, forever.',
    ),
  }),
  audit: section({
    keep: optionalDuration({ min: '1d', max: '36500d' }).describe(
      'How long audit events are kept; without it, forever.',
    ),
    head_file: filePath()
      .optional()
      .describe('File to which the hash of each audit event is added, best one that can only grow, for audit verify.'),
  }),
  webhooks: section({
    timeout: duration('15s', { min: '1s', max: '1m' }).describe('How long the target of a webhook may take to answer.'),
    allow_private: z
      .array(network(), { error: 'a list of addresses or networks' })
      .default([])
      .describe('Addresses or networks that webhooks may lead to, though they are not public, such as 192.168.1.0/24.'),
    caller_url: oneOf(['ignore', 'match'])
      .default('ignore')
      .describe(
        'match: a game that sends the address of a webhook made with --for-games has its changes told there as well.',
      ),
    targets: z
      .array(declaredWebhook, { error: 'a list of webhooks' })
      .max(maxWebhooks, { error: `at most ${maxWebhooks} webhooks` })
      .check(unique<DeclaredWebhookSettings>('webhooks.targets', ['name']))
      .prefault([])
      .describe(
        'Webhooks declared here, not made by rankd webhook add; commands show them, but only this file changes them.',
      ),
  }),
  store: section({
    url: z
      .string({ error: 'postgres://USER@HOST/DATABASE' })
      .optional()
      .describe(
        'A PostgreSQL database that several daemons share: postgres://USER@HOST/DATABASE; without it, SQLite in the data directory.',
      ),
    password_file: filePath()
      .optional()
      .describe('File with the password for PostgreSQL, readable by rankd alone; or RANKD_STORE_PASSWORD.'),
    ca_file: filePath()
      .optional()
      .describe(
        "Certificate (PEM) of the authority that vouches for PostgreSQL's server; without it, those of the system.",
      ),
    tls: oneOf(['verify', 'off'])
      .optional()
      .describe('verify, or off; without it, off where PostgreSQL runs on this machine and no ca_file is set.'),
    node: z
      .string({ error: 'a name' })
      .regex(/^[\w.:-]{1,64}$/, { error: 'a name of letters, digits, dots, colons and dashes, 64 at most' })
      .optional()
      .describe('How rankd status names this daemon among those that share the database; else HOST:PORT.'),
  }),
  log: section({
    level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
      .default('info')
      .describe('The least severe level that is logged.'),
  }),
  compat: z
    .array(oneOf(['rankgun', 'noblox-server']), { error: 'a list of rankgun, noblox-server' })
    .default([])
    .describe('Other services whose scripts rankd answers too: rankgun, noblox-server; see docs/moving.md.'),
  keys: z
    .array(declaredKey, { error: 'a list of keys' })
    .check(unique<DeclaredKeySettings>('keys', ['name', 'hash']))
    .prefault([])
    .describe(
      'Game keys declared here, not made by rankd key create; commands show them, but only this file changes them.',
    ),
}).check(({ value: { server, metrics, dashboard }, issues }) => {
  if (issues.length > 0) return;
  // Under its default port and without a fixed address, the page moves on to the next free port.
  const isPageFixed = dashboard.url !== undefined || dashboard.port !== dashboardPort;
  const listeners = [
    { ...server, name: 'server', words: 'the server', isOn: true },
    { ...metrics, name: 'metrics', words: 'the metrics', isOn: metrics.enabled },
    { ...dashboard, name: 'dashboard', words: 'the page', isOn: isPageFixed },
  ].filter(({ isOn, port }) => isOn && port !== 0);
  for (const [index, { name, host, port }] of listeners.entries()) {
    const other = listeners.slice(0, index).find((one) => one.port === port && overlap(one.host, host));
    if (other === undefined) continue;
    const message = `another port than that of ${other.words} (${other.name}.port)`;
    issues.push({ code: 'custom', path: [name, 'port'], input: port, message });
  }
});

function twiceIn(entries: RoleName[]): RoleName | undefined {
  const seen = new Set<RoleName>();
  return entries.find((entry) => seen.size === seen.add(entry).size);
}

function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d+){3}$/.test(host);
}

function overlap(...hosts: [string, string]): boolean {
  const [one, other] = hosts.map((host) => (host === 'localhost' ? '127.0.0.1' : host)) as [string, string];
  return one === other || [one, other].some((host) => host === '0.0.0.0' || host === '::');
}

/** The settings under the names of the file, checked and with defaults. Durations are in milliseconds. */
export type Settings = z.output<typeof settingsSchema>;
