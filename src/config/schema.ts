import * as z from 'zod';
import { isRank, type RoleName } from '../core/role-scheme.ts';
import { maxWebhooks } from '../core/webhooks/webhook.ts';
import { type DeclaredKeySettings, declaredKey } from './declared-key.ts';
import { type DeclaredWebhookSettings, declaredWebhook } from './declared-webhook.ts';
import { discordSection } from './discord.ts';
import { tlsModes } from './store-choice.ts';
import {
  duration,
  durationByRank,
  filePath,
  host,
  id,
  ids,
  network,
  oneOf,
  optionalDuration,
  optionalUrl,
  origin,
  pathOfPage,
  rankOrName,
  role,
  roles,
  section,
  trueOrFalse,
  unique,
  url,
  whole,
  wordOrRoles,
} from './values.ts';

const workspaceIdError = 'ws_ and 1 to 60 letters or digits, as `rankd workspace show` prints it';
const dashboardPort = 7266;

/**
 * Every setting of `rankd.yaml`, with its default and its description. The message of each check describes a valid value; the report adds
 * the actual value and its place.
 */
export const settingsSchema = section({
  group: section({
    id: id().optional().describe('The one group this daemon ranks in; needed with open-cloud.'),
    ladder: roles()
      .min(1, { error: 'at least one role' })
      .refine((entries) => twiceIn(entries) === undefined, {
        error: ({ input }) => `a list without repetitions; it names ${twiceIn(input as RoleName[])} twice`,
      })
      .optional()
      .describe(
        'Ranks, role ids or role names of the promotion ladder; without it, the ladder is all roles by their rank.',
      ),
    rank_1: oneOf(['custom', 'base'])
      .default('custom')
      .describe(
        'Meaning of rank 1 if one of your roles shares it with the base role: your role (custom), or the base role.',
      ),
  }),
  platform: section({
    kind: oneOf(['open-cloud', 'simulated'])
      .optional()
      .describe('open-cloud, or simulated to try things out; without it, open-cloud if group.id is set.'),
    api_key_file: filePath()
      .optional()
      .describe(
        'File with the Roblox key, an Open Cloud API key (scope group:write), readable only by rankd; or RANKD_PLATFORM_API_KEY.',
      ),
    base_url: url('https://apis.roblox.com').describe('Address of the Open Cloud API.'),
    legacy_base_url: url('https://groups.roblox.com').describe(
      'Address of the public role list, which shows the base role.',
    ),
    users_base_url: url('https://users.roblox.com').describe('Address that looks up user names, without a key.'),
    develop_base_url: url('https://develop.roblox.com').describe(
      'Address that lists the places of an experience, without a key.',
    ),
    group_file: filePath().optional().describe('YAML file with the group to simulate, instead of the built-in one.'),
  }),
  server: section({
    host: host()
      .default('127.0.0.1')
      .describe('Address to listen on; keep it on loopback behind a reverse proxy with TLS.'),
    port: whole(0, 65_535)
      .default(7265)
      .describe('Port to listen on, or 0 for any free port; games can reach 80, 443, and 1024 and above except 1194.'),
    public_url: optionalUrl().describe(
      'Address at which games reach rankd, such as https://rankd.example.com; rankd writes it into the files for games.',
    ),
    deadline: duration('20s', { min: '1s', max: '5m' }).describe(
      'Time limit for every response; games have been seen to give up after about 30 s.',
    ),
    max_connections: whole(1, 1_000_000)
      .default(1000)
      .describe('Limit of open connections, a quarter of them from one address; above it, rankd closes the slowest.'),
    trusted_proxies: z
      .array(network(), { error: 'a list of addresses or networks' })
      .default(['127.0.0.0/8', '::1'])
      .describe('Reverse proxies whose X-Forwarded-For is trusted: addresses, or networks such as 10.0.0.0/8.'),
  }),
  policy: section({
    min_rank: rankOrName()
      .default(1)
      .describe(
        'Lowest rank (or role name) that rankd gives or takes; members below it are not changed. Base members have 1.',
      ),
    max_rank: rankOrName()
      .default(254)
      .describe('Highest rank (or role name) that rankd gives or takes, whatever the key allows.'),
    locked_roles: roles().default([]).describe('Ranks, role ids or role names that rankd never gives or takes.'),
    privileged_roles: wordOrRoles(['allow', 'operator'])
      .default('allow')
      .describe(
        'Roles with power over others: allow; operator: no game gives or takes them; or a list of more such roles.',
      ),
    protected_members: ids().default([]).describe('Ids of users whose rank rankd never changes.'),
    protected_roles: roles()
      .default([])
      .describe('Ranks, role ids or role names; rankd never changes the rank of their holders.'),
    steps: oneOf(['any', 'adjacent'])
      .default('any')
      .describe('any, or adjacent: only to the next rank up or down (of the ladder, if set), except locked ranks.'),
    stale: oneOf(['ignore', 'refuse'])
      .default('ignore')
      .describe(
        'refuse: a request to /v1/ranker whose oldRankName names a role that the member does not hold is refused.',
      ),
    reason: oneOf(['optional', 'required'])
      .default('optional')
      .describe(
        'required: a game or a person in Discord has to give a reason; on /v1/ranker, a command counts as one.',
      ),
    self_rank: oneOf(['allow', 'deny']).default('allow').describe('Whether a player may change their own rank.'),
    ranker_check: oneOf(['off', 'claimed', 'verify'])
      .default('off')
      .describe(
        'off; claimed: the request must name another player as ranker; verify: that player must also rank higher on Roblox.',
      ),
    min_ranker_rank: whole(1, 255)
      .default(1)
      .describe('With ranker_check verify: the lowest rank that a ranker needs.'),
    cooldown: durationByRank('0s', { min: '0s', max: '30d', example: '30s' })
      .describe(
        "Shortest time between two changes of one member; by the member's rank before, with a list such as [{from: 20, for: 7d}].",
      )
      .check(unique('policy.cooldown', ['from'])),
    ranker_cooldown: duration('0s', { min: '0s', max: '30d', example: '30s' }).describe(
      'Shortest time between two changes by one ranker; 0s for none.',
    ),
    breaker: section({
      enabled: trueOrFalse()
        .default(true)
        .describe('Whether rankd pauses a key that changes many members in a short time.'),
      demotions: whole(1, 1_000_000)
        .default(10)
        .describe('Different members that one key may demote per window; all keys together, three times as many.'),
      high_rank: whole(1, 254)
        .optional()
        .describe(
          'Also counts each change of a member from or to this rank or above; without it, from or to a privileged role.',
        ),
      high_changes: whole(1, 1_000_000)
        .default(5)
        .describe(
          'Different members that one key may change in this way per window; all keys together, three times as many.',
        ),
      window: duration('10m', { min: '1s', max: '30d' }).describe('Time over which changes are counted.'),
    }),
    suspension: section({
      role: role()
        .optional()
        .describe('Rank, role id or role name that suspended members hold; without it, only the base role.'),
      max: duration('365d', { min: '1m', max: '36500d' }).describe(
        'Longest duration of a suspension or a temporary rank.',
      ),
    }),
  }).check(({ value, issues }) => {
    if (issues.length > 0 || !isRank(value.min_rank) || !isRank(value.max_rank)) return; // rankd compares names once it knows the roles
    if (value.min_rank <= value.max_rank) return;
    const message = `a rank up to policy.max_rank, which is ${value.max_rank}`;
    issues.push({ code: 'custom', path: ['min_rank'], input: value.min_rank, message });
  }),
  workspace: section({
    id: z
      .string({ error: workspaceIdError })
      .regex(/^ws_\w{1,60}$/, { error: workspaceIdError })
      .optional()
      .describe('Id of the workspace, which games get; without it, each new database makes one.'),
  }),
  security: section({
    roblox_id: oneOf(['off', 'warn', 'enforce'])
      .default('off')
      .describe(
        'Whether the Roblox-Id header, which Roblox adds, must match the placeid sent; enforce needs place ids, not universe ids.',
      ),
  }),
  limits: section({
    rank: whole(0, 1_000_000).default(600).describe('Rank changes per key and minute; 0 turns the limit off.'),
    rank_burst: whole(0, 1_000_000)
      .default(300)
      .describe('Rank changes that one key may send at once; 0 turns the limit off.'),
    verify: whole(0, 1_000_000).default(3000).describe('Key verifications per key and minute; 0 turns the limit off.'),
    place: whole(0, 1_000_000)
      .default(0)
      .describe('Rank changes per place and minute, within the limit of its key; 0 turns the limit off.'),
    failed_auth: whole(0, 1_000_000)
      .default(60)
      .describe(
        'Requests per minute without a valid key, per address, or for places not whitelisted, per key; 0 turns the limit off.',
      ),
  }),
  metrics: section({
    enabled: trueOrFalse().default(false).describe('Whether rankd serves metrics for Prometheus.'),
    host: host().default('127.0.0.1').describe('Address of the listener for metrics, which requires no key.'),
    port: whole(0, 65_535).default(9265).describe('Port of the listener for metrics, or 0 for any free port.'),
  }),
  dashboard: section({
    enabled: trueOrFalse()
      .default(false)
      .describe('Whether the page always listens; otherwise it starts with `rankd dashboard`.'),
    host: host().default('127.0.0.1').describe('Address of the page; any other than loopback needs dashboard.url.'),
    port: whole(0, 65_535)
      .default(dashboardPort)
      .describe('Port of the page, or 0 for any free port; if another program uses it, rankd takes the next free one.'),
    path: pathOfPage()
      .optional()
      .describe('Path at which the API serves the page too, such as /page: for a host with one port; off without it.'),
    url: origin()
      .optional()
      .describe('Address at which browsers reach the page: https of a proxy, or http://127.0.0.1:PORT of a tunnel.'),
  }).check(({ value, issues }) => {
    if (issues.length > 0 || value.url !== undefined || isLoopbackHost(value.host)) return;
    const message =
      'a loopback address, because the page is plain http; to reach it from elsewhere, leave dashboard.host unset and use `ssh -L 7266:127.0.0.1:7266 THIS-MACHINE`, or put a proxy with TLS in front and set dashboard.url to its https address';
    issues.push({ code: 'custom', path: ['host'], input: value.host, message });
  }),
  history: section({
    keep: optionalDuration({ min: '1d', max: '36500d' }).describe(
      'How long rank changes are stored, or longer if cooldowns or the breaker need them; without it, forever.',
    ),
  }),
  audit: section({
    keep: optionalDuration({ min: '1d', max: '36500d' }).describe(
      'How long audit events are stored; without it, forever.',
    ),
    head_file: filePath()
      .optional()
      .describe('File that gets the hash of each audit event, for audit verify; preferably an append-only file.'),
  }),
  erasure: section({
    secret_file: filePath()
      .optional()
      .describe(
        "File with the secret of Roblox's right-to-erasure webhook, readable only by rankd; or RANKD_ERASURE_SECRET.",
      ),
  }),
  webhooks: section({
    timeout: duration('15s', { min: '1s', max: '1m' }).describe("Timeout for the response of a webhook's target."),
    allow_private: z
      .array(network(), { error: 'a list of addresses or networks' })
      .default([])
      .describe('Private addresses or networks that webhooks may reach, such as 192.168.1.0/24.'),
    caller_url: oneOf(['ignore', 'match'])
      .default('ignore')
      .describe(
        "match: a game can send the address of a webhook made with --for-games, which then also gets the game's changes.",
      ),
    targets: z
      .array(declaredWebhook, { error: 'a list of webhooks' })
      .max(maxWebhooks, { error: `at most ${maxWebhooks} webhooks` })
      .check(unique<DeclaredWebhookSettings>('webhooks.targets', ['name']))
      .prefault([])
      .describe(
        'Webhooks declared here instead of with rankd webhook add; commands show them, but only this file changes them.',
      ),
  }),
  discord: discordSection(),
  store: section({
    url: z
      .string({ error: 'postgres://USER@HOST/DATABASE' })
      .optional()
      .describe(
        'PostgreSQL database that several daemons share: postgres://USER@HOST/DATABASE; without it, SQLite in the data directory.',
      ),
    password_file: filePath()
      .optional()
      .describe('File with the password for PostgreSQL, readable only by rankd; or RANKD_STORE_PASSWORD.'),
    ca_file: filePath()
      .optional()
      .describe('CA certificate (PEM) that signed the certificate of PostgreSQL; without it, the CAs of the system.'),
    tls: oneOf(tlsModes)
      .optional()
      .describe(
        'verify; require: encrypted, but only the password proves the server; or off. Without it: off on this machine, elsewhere verify.',
      ),
    node: z
      .string({ error: 'a name' })
      .regex(/^[\w.:-]{1,64}$/, { error: 'a name of letters, digits, dots, colons and dashes, 64 at most' })
      .optional()
      .describe('Name of this daemon in rankd status if several share the database; without it, HOST:PORT.'),
  }),
  log: section({
    level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
      .default('info')
      .describe('Least severe level to log.'),
  }),
  compat: z
    .array(oneOf(['rankgun', 'noblox-server']), { error: 'a list of rankgun, noblox-server' })
    .default([])
    .describe('Other services whose scripts rankd also serves: rankgun, noblox-server; see docs/moving.md.'),
  keys: z
    .array(declaredKey, { error: 'a list of keys, in YAML or JSON' })
    .check(unique<DeclaredKeySettings>('keys', ['name', 'hash']))
    .prefault([])
    .describe('Game keys declared here instead of with rankd key create; commands show them, but do not change them.'),
}).check(({ value: { server, metrics, dashboard }, issues }) => {
  if (issues.length > 0) return;
  // On its default port and without a fixed address, the page takes the next free port.
  const isPageFixed = dashboard.path === undefined && (dashboard.url !== undefined || dashboard.port !== dashboardPort);
  const listeners = [
    { ...server, name: 'server', label: 'the server', isOn: true },
    { ...metrics, name: 'metrics', label: 'the metrics', isOn: metrics.enabled },
    { ...dashboard, name: 'dashboard', label: 'the page', isOn: isPageFixed },
  ].filter(({ isOn, port }) => isOn && port !== 0);
  for (const [index, { name, host, port }] of listeners.entries()) {
    const other = listeners.slice(0, index).find((one) => one.port === port && overlap(one.host, host));
    if (other === undefined) continue;
    const message = `a port other than that of ${other.label} (${other.name}.port)`;
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

/** The checked settings with defaults, under their names in the file. Durations are in milliseconds. */
export type Settings = z.output<typeof settingsSchema>;
