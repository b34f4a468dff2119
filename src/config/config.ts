import type { OutboundProxy } from '../base/outbound-proxy.ts';
import type { ServerAddress } from '../base/server-address.ts';
import type { PolicySettings } from '../core/policy-names.ts';
import type { RoleName } from '../core/role-name.ts';
import type { RankOne } from '../core/role-scheme.ts';
import { type DeclaredKey, toDeclaredKey } from './declared-key.ts';
import type { DeclaredWebhook } from './declared-webhook.ts';
import type { PlatformChoice } from './platform-choice.ts';
import type { Settings } from './schema.ts';
import type { Secret } from './secret.ts';

/** The configuration as the rest of rankd gets it: checked, with defaults, and with units in the names. */
export interface Config {
  platform: OpenCloudConfig | SimulatedConfig;
  group: {
    /** `undefined`: no ladder. */
    ladder: RoleName[] | undefined;
    rankOne: RankOne;
  };
  server: ServerConfig;
  policy: PolicySettings & { breaker: BreakerConfig; suspension: SuspensionConfig };
  security: { robloxId: Settings['security']['roblox_id'] };
  limits: LimitsConfig;
  metrics: { enabled: boolean; host: string; port: number };
  dashboard: DashboardConfig;
  retention: RetentionConfig;
  /** `headFile`: an absolute path; `undefined`: the heads of the audit are noted nowhere. */
  audit: { headFile: string | undefined };
  webhooks: WebhooksConfig;
  /** `undefined`: SQLite in the data directory. */
  store: ServerAddress | undefined;
  /** How this daemon is named among those that share its store; `undefined`: by where it listens. */
  nodeName: string | undefined;
  log: { level: Settings['log']['level'] };
  /** Other services whose requests are answered in their own way. */
  compat: Settings['compat'];
  keys: DeclaredKey[];
}

export interface SuspensionConfig {
  /** `undefined`: whoever is suspended holds the base role alone. */
  role: RoleName | undefined;
  maxMs: number;
}

export interface ServerConfig {
  host: string;
  port: number;
  /** Where games reach it, without a trailing slash. */
  publicUrl: string | undefined;
  deadlineMs: number;
  maxConnections: number;
  /** Addresses and networks. */
  trustedProxies: string[];
}

export interface DashboardConfig {
  /** False: nothing listens until somebody asks for a link. */
  enabled: boolean;
  host: string;
  port: number;
  /** Where browsers reach it, if that is not where it listens: an origin. */
  url: string | undefined;
}

export interface OpenCloudConfig {
  kind: 'open-cloud';
  groupId: number;
  apiKey: Secret;
  /** Without a trailing slash. */
  baseUrl: string;
  /** Without a trailing slash. */
  legacyBaseUrl: string;
  /** Without a trailing slash. */
  usersBaseUrl: string;
  proxy?: OutboundProxy | undefined;
}

export interface SimulatedConfig {
  kind: 'simulated';
  /** True if no setting names a platform or a group. */
  isDefault: boolean;
  groupId: number | undefined;
  /** Absolute path of a YAML file; `undefined`: the built-in group. */
  groupFile: string | undefined;
}

/** How much one key may do before it is paused; all keys together may do three times that. */
export interface BreakerConfig {
  enabled: boolean;
  /** Different members that one key may demote per window. */
  demotions: number;
  /** `undefined`: privileged roles are looked at instead. */
  highRank: number | undefined;
  /** Different members at or above `highRank`, or with a privileged role, that one key may change per window. */
  highChanges: number;
  windowMs: number;
}

/** How long records are kept, in milliseconds; `undefined`: for ever. */
export interface RetentionConfig {
  historyMs: number | undefined;
  auditMs: number | undefined;
}

export interface WebhooksConfig {
  timeoutMs: number;
  /** Networks that are not public, and may be called all the same. */
  allowPrivate: string[];
  /** `match`: a game can choose among the webhooks that are for games. */
  callerUrl: Settings['webhooks']['caller_url'];
  targets: DeclaredWebhook[];
  /** Webhooks never go through it; a failure says so. */
  proxy?: OutboundProxy | undefined;
}

/** Limits a minute; 0 turns one off. */
export interface LimitsConfig {
  rankPerMinute: number;
  /** Rank changes that may come at once. */
  rankBurst: number;
  verifyPerMinute: number;
  /** Rank requests of one place with one key. */
  placePerMinute: number;
  /** Requests without an accepted key, of one address. */
  failedAuthPerMinute: number;
}

/**
 * The settings as the code names them, for the chosen platform. `files` are absolute paths; `at` says where
 * the file has something (`file:line:col`).
 */
export function toConfig(
  settings: Settings,
  choice: PlatformChoice,
  {
    files: { groupFile, headFile },
    targets,
    store,
    proxy,
    at,
  }: {
    files: Record<'groupFile' | 'headFile', string | undefined>;
    targets: DeclaredWebhook[];
    store: ServerAddress | undefined;
    proxy: OutboundProxy | undefined;
    at: (path: readonly PropertyKey[]) => string;
  },
): Config {
  const { group, server, policy, security, limits, metrics, dashboard, history, audit, webhooks, log } = settings;
  return {
    platform: toPlatformConfig(settings, choice, { groupFile, proxy }),
    group: { ladder: group.ladder, rankOne: group.rank_1 },
    server: {
      host: server.host,
      port: server.port,
      publicUrl: server.public_url,
      deadlineMs: server.deadline,
      maxConnections: server.max_connections,
      trustedProxies: server.trusted_proxies,
    },
    policy: {
      minRank: policy.min_rank,
      maxRank: policy.max_rank,
      lockedRoles: policy.locked_roles,
      privilegedRoles: policy.privileged_roles,
      protectedMembers: policy.protected_members,
      protectedRoles: policy.protected_roles,
      steps: policy.steps,
      selfRank: policy.self_rank,
      rankerCheck: policy.ranker_check,
      minRankerRank: policy.min_ranker_rank,
      cooldownMs: policy.cooldown,
      rankerCooldownMs: policy.ranker_cooldown,
      breaker: {
        enabled: policy.breaker.enabled,
        demotions: policy.breaker.demotions,
        highRank: policy.breaker.high_rank,
        highChanges: policy.breaker.high_changes,
        windowMs: policy.breaker.window,
      },
      suspension: { role: policy.suspension.role, maxMs: policy.suspension.max },
    },
    security: { robloxId: security.roblox_id },
    limits: {
      rankPerMinute: limits.rank,
      rankBurst: limits.rank_burst,
      verifyPerMinute: limits.verify,
      placePerMinute: limits.place,
      failedAuthPerMinute: limits.failed_auth,
    },
    metrics,
    dashboard: { ...dashboard, url: dashboard.url },
    retention: { historyMs: history.keep, auditMs: audit.keep },
    audit: { headFile },
    webhooks: {
      timeoutMs: webhooks.timeout,
      allowPrivate: webhooks.allow_private,
      callerUrl: webhooks.caller_url,
      targets,
      proxy,
    },
    store,
    nodeName: settings.store.node,
    log: { level: log.level },
    compat: settings.compat,
    keys: settings.keys.map((key, index) => toDeclaredKey(key, (...path) => at(['keys', index, ...path]))),
  };
}

function toPlatformConfig(
  { group, platform }: Settings,
  choice: PlatformChoice,
  { groupFile, proxy }: { groupFile: string | undefined; proxy: OutboundProxy | undefined },
): Config['platform'] {
  if (choice.kind === 'simulated') return { ...choice, groupId: group.id, groupFile };
  return {
    ...choice,
    baseUrl: platform.base_url,
    legacyBaseUrl: platform.legacy_base_url,
    usersBaseUrl: platform.users_base_url,
    proxy,
  };
}
