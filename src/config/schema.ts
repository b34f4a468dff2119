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
  wholeNumberBetween,
  wordOrRoles,
} from './values.ts';

const workspaceIdError = 'ws_ and 1 to 60 letters, digits or underscores, as `rankd workspace show` prints it';
const dashboardPort = 7266;

/**
 * Every setting in `rankd.yaml`, with its default and its description. The error of each check describes a valid value;
 * the report adds the actual value and its location.
 */
export const settingsSchema = section({
  group: section({
    id: id().optional().describe('Id of the one group in which this daemon changes ranks; required for open-cloud.'),
    ladder: roles()
      .min(1, { error: 'at least one role' })
      .refine((entries) => firstRepeated(entries) === undefined, {
        error: ({ input }) => `a list without duplicates; ${firstRepeated(input as RoleName[])} is in it twice`,
      })
      .optional()
      .describe('Ranks, role ids or role names of the promotion ladder; without it, all roles in order of rank.'),
    rank_1: oneOf(['custom', 'base'])
      .default('custom')
      .describe(
        'Meaning of rank 1 if one of your roles shares it with the base role: custom (your role) or base (the base role).',
      ),
  }),
  platform: section({
    kind: oneOf(['open-cloud', 'simulated'])
      .optional()
      .describe('open-cloud, or simulated to try rankd out; without it, open-cloud if group.id is set.'),
    api_key_file: filePath()
      .optional()
      .describe(
        'File with the Roblox key, an Open Cloud API key (scope group:write), readable only by rankd; or use RANKD_PLATFORM_API_KEY.',
      ),
    base_url: url('https://apis.roblox.com').describe('Address of the Open Cloud API.'),
    legacy_base_url: url('https://groups.roblox.com').describe(
      'Address of the API with the public role list, which includes the base role.',
    ),
    users_base_url: url('https://users.roblox.com').describe(
      'Address of the API that looks up user names, which needs no key.',
    ),
    develop_base_url: url('https://develop.roblox.com').describe(
      'Address of the API that lists the places of an experience, which needs no key.',
    ),
    group_file: filePath().optional().describe('YAML file with the group to simulate, instead of the built-in group.'),
  }),
  server: section({
    host: host()
      .default('127.0.0.1')
      .describe('Address to listen on; keep it on loopback behind a reverse proxy with TLS.'),
    port: wholeNumberBetween(0, 65_535)
      .default(7265)
      .describe('Port to listen on, or 0 for any free port; games can reach 80, 443, and 1024 and above except 1194.'),
    public_url: optionalUrl().describe(
      'Address at which games reach rankd, such as https://rankd.example.com; rankd writes it into the files for games.',
    ),
    deadline: duration('20s', { min: '1s', max: '5m' }).describe(
      'Time limit for every response; game requests have been observed to time out after about 30 s.',
    ),
    max_connections: wholeNumberBetween(1, 1_000_000)
      .default(1000)
      .describe(
        'Maximum number of open connections, of which one address may use a quarter; beyond it, rankd closes the slowest.',
      ),
    trusted_proxies: z
      .array(network(), { error: 'a list of addresses or networks' })
      .default(['127.0.0.0/8', '::1'])
      .describe(
        'Reverse proxies whose X-Forwarded-For header rankd trusts: addresses, or networks such as 10.0.0.0/8.',
      ),
  }),
  policy: section({
    min_rank: rankOrName()
      .default(1)
      .describe(
        'Lowest rank (or role name) that rankd gives or takes; it never changes members below it. Base members have rank 1.',
      ),
    max_rank: rankOrName()
      .default(254)
      .describe('Highest rank (or role name) that rankd gives or takes, even if a key allows more.'),
    locked_roles: roles().default([]).describe('Ranks, role ids or role names that rankd never gives or takes.'),
    privileged_roles: wordOrRoles(['allow', 'operator'])
      .default('allow')
      .describe(
        'Roles with power over others: allow; operator: only the operator gives or takes them; a list: operator, plus these roles.',
      ),
    protected_members: ids().default([]).describe('Ids of users whose rank rankd never changes.'),
    protected_roles: roles()
      .default([])
      .describe('Ranks, role ids or role names; rankd never changes the rank of a member who holds one of them.'),
    steps: oneOf(['any', 'adjacent'])
      .default('any')
      .describe('any, or adjacent: only to the next rank up or down (on the ladder, if set), skipping locked ranks.'),
    stale: oneOf(['ignore', 'refuse'])
      .default('ignore')
      .describe(
        'refuse: rankd refuses a request to /v1/ranker if its oldRankName names a role that the member does not hold.',
      ),
    reason: oneOf(['optional', 'required'])
      .default('optional')
      .describe('required: a game or a person on Discord must give a reason; on /v1/ranker, a command counts as one.'),
    self_rank: oneOf(['allow', 'deny']).default('allow').describe('Whether players may change their own rank.'),
    ranker_check: oneOf(['off', 'claimed', 'verify'])
      .default('off')
      .describe(
        'off; claimed: the request must name another player as ranker; verify: that player must also rank higher on Roblox.',
      ),
    min_ranker_rank: wholeNumberBetween(1, 255)
      .default(1)
      .describe('Lowest rank that a ranker must have, if ranker_check is verify.'),
    cooldown: durationByRank('0s', { min: '0s', max: '30d', example: '30s' })
      .describe(
        "Shortest time between two changes of one member, or a list by the member's current rank, such as [{from: 20, for: 7d}].",
      )
      .check(unique('policy.cooldown', ['from'])),
    ranker_cooldown: duration('0s', { min: '0s', max: '30d', example: '30s' }).describe(
      'Shortest time between two changes by one ranker; 0s for none.',
    ),
    breaker: section({
      enabled: trueOrFalse()
        .default(true)
        .describe(
          'Whether rankd pauses a key that demotes many members, or changes many with high or privileged roles, in a short time.',
        ),
      demotions: wholeNumberBetween(1, 1_000_000)
        .default(10)
        .describe(
          'Number of members that one key may demote per window; all keys together may demote three times as many.',
        ),
      high_rank: wholeNumberBetween(1, 254)
        .optional()
        .describe(
          'The breaker also counts changes from or to this rank or above; without it, changes from or to a privileged role.',
        ),
      high_changes: wholeNumberBetween(1, 1_000_000)
        .default(5)
        .describe(
          'Number of members that one key may change in this way per window; all keys together may change three times as many.',
        ),
      window: duration('10m', { min: '1s', max: '30d' }).describe('Time over which the breaker counts changes.'),
    }),
    suspension: section({
      role: role()
        .optional()
        .describe('Rank, role id or role name that suspended members hold; without it, they hold only the base role.'),
      max: duration('365d', { min: '1m', max: '36500d' }).describe(
        'Longest duration of a suspension or a temporary rank.',
      ),
    }),
  }).check(({ value, issues }) => {
    if (issues.length > 0 || !isRank(value.min_rank) || !isRank(value.max_rank)) return; // names are compared later
    if (value.min_rank <= value.max_rank) return;
    const message = `a rank up to policy.max_rank, which is ${value.max_rank}`;
    issues.push({ code: 'custom', path: ['min_rank'], input: value.min_rank, message });
  }),
  workspace: section({
    id: z
      .string({ error: workspaceIdError })
      .regex(/^ws_\w{1,60}$/, { error: workspaceIdError })
      .optional()
      .describe(
        'Id of the workspace, which rankd returns to games; without it, rankd generates one for each new database.',
      ),
  }),
  security: section({
    roblox_id: oneOf(['off', 'warn', 'enforce'])
      .default('off')
      .describe(
        "Whether the Roblox-Id header, which Roblox adds, must match the request's placeid; enforce needs place ids, not universe ids.",
      ),
  }),
  limits: section({
    rank: wholeNumberBetween(0, 1_000_000)
      .default(600)
      .describe('Rank changes per key and minute; 0 turns the limit off.'),
    rank_burst: wholeNumberBetween(0, 1_000_000)
      .default(300)
      .describe('Rank changes that one key may send at once; 0 allows all changes of one minute at once.'),
    verify: wholeNumberBetween(0, 1_000_000)
      .default(3000)
      .describe('Verifications and reads per key and minute; 0 turns the limit off.'),
    place: wholeNumberBetween(0, 1_000_000)
      .default(0)
      .describe(
        "Rank changes per minute from each place of a key, in addition to the key's limit; 0 turns the limit off.",
      ),
    failed_auth: wholeNumberBetween(0, 1_000_000)
      .default(60)
      .describe(
        'Requests per minute without a valid key (per address) or for places not whitelisted (per key); 0 turns the limit off.',
      ),
  }),
  metrics: section({
    enabled: trueOrFalse().default(false).describe('Whether rankd serves metrics for Prometheus.'),
    host: host().default('127.0.0.1').describe('Address of the listener for metrics, which requires no key.'),
    port: wholeNumberBetween(0, 65_535)
      .default(9265)
      .describe('Port of the listener for metrics, or 0 for any free port.'),
  }),
  dashboard: section({
    enabled: trueOrFalse()
      .default(false)
      .describe('Whether rankd always serves the page; otherwise, `rankd dashboard` starts it.'),
    host: host()
      .default('127.0.0.1')
      .describe('Address on which the page listens; any address but loopback requires dashboard.url.'),
    port: wholeNumberBetween(0, 65_535)
      .default(dashboardPort)
      .describe(
        'Port of the page, or 0 for any free port; if it is taken, rankd takes the next free one, unless dashboard.url is set.',
      ),
    path: pathOfPage()
      .optional()
      .describe(
        "Path, such as /page, at which the API's port serves the page instead of dashboard.port, for hosts with a single port.",
      ),
    url: origin()
      .optional()
      .describe(
        "Address at which browsers reach the page: a proxy's https address, or http://127.0.0.1:PORT through a tunnel.",
      ),
  }).check(({ value, issues }) => {
    if (issues.length > 0 || value.url !== undefined || isLoopbackHost(value.host)) return;
    const port = value.port || dashboardPort;
    const message = `a loopback address, because the page uses plain HTTP; to reach it from elsewhere, leave dashboard.host unset and use \`ssh -L ${port}:127.0.0.1:${port} THIS-MACHINE\`, or put a proxy with TLS in front and set dashboard.url to its https address`;
    issues.push({ code: 'custom', path: ['host'], input: value.host, message });
  }),
  history: section({
    keep: optionalDuration({ min: '1d', max: '36500d' }).describe(
      'How long rankd stores rank changes (longer if cooldowns or the breaker need them); without it, forever.',
    ),
  }),
  audit: section({
    keep: optionalDuration({ min: '1d', max: '36500d' }).describe(
      'How long rankd stores audit events; without it, forever.',
    ),
    head_file: filePath()
      .optional()
      .describe(
        'File to which rankd appends the hash of each audit event, for `rankd audit verify`; preferably append-only.',
      ),
  }),
  erasure: section({
    secret_file: filePath()
      .optional()
      .describe(
        "File with the secret of Roblox's right-to-erasure webhook, readable only by rankd; or use RANKD_ERASURE_SECRET.",
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
        "match: a game can send the address of a webhook created with --for-games, which then also receives the game's changes.",
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
        'PostgreSQL database, which several daemons can share: postgres://USER@HOST/DATABASE; without it, SQLite in the data directory.',
      ),
    password_file: filePath()
      .optional()
      .describe('File with the password for PostgreSQL, readable only by rankd; or use RANKD_STORE_PASSWORD.'),
    ca_file: filePath()
      .optional()
      .describe("CA certificate (PEM) that signed PostgreSQL's certificate; without it, the CAs that Node.js trusts."),
    tls: oneOf(tlsModes)
      .optional()
      .describe(
        'verify; require: encrypted, but only the password proves the server; off. Default: off for a server on this machine, else verify.',
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
    .describe('Other services whose clients rankd also accepts: rankgun, noblox-server; see docs/moving.md.'),
  keys: z
    .array(declaredKey, { error: 'a list of keys, in YAML or JSON' })
    .check(unique<DeclaredKeySettings>('keys', ['name', 'hash']))
    .prefault([])
    .describe('Game keys declared here instead of with rankd key create; commands show them, but do not change them.'),
}).check(({ value: { server, metrics, dashboard }, issues }) => {
  if (issues.length > 0) return;
  // With a path, the page shares the API's listener. With the default port and no URL, it falls back to the next free
  // port.
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

function firstRepeated(entries: RoleName[]): RoleName | undefined {
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

/** The validated settings, named as in the file, with defaults filled in and durations in milliseconds. */
export type Settings = z.output<typeof settingsSchema>;
