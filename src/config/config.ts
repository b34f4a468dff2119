import type { ServerAddress } from '../base/net.ts';
import type { OutboundProxy } from '../base/outbound-proxy.ts';
import { toDeclaredKey } from './declared-key.ts';
import type { DeclaredWebhook } from './declared-webhook.ts';
import { toDiscordConfig } from './discord.ts';
import type { PlatformChoice } from './platform-choice.ts';
import type { Settings } from './schema.ts';
import type { Secret } from './secret.ts';

/** The validated configuration that the rest of rankd uses, with defaults filled in and units in the names. */
export type Config = ReturnType<typeof toConfig>;
export type LimitsConfig = Config['limits'];
export type DashboardConfig = Config['dashboard'];
export type RetentionConfig = Config['retention'];
export type WebhooksConfig = Config['webhooks'];
export type BreakerConfig = Config['policy']['breaker'];
export type SuspensionConfig = Config['policy']['suspension'];

/** Parts of the configuration that come from files and variables, not only from settings. */
interface Resolved {
  /** Absolute paths. */
  files: Record<'groupFile' | 'headFile', string | undefined>;
  targets: DeclaredWebhook[];
  /** `undefined` means SQLite in the data directory. */
  store: ServerAddress | undefined;
  proxy: OutboundProxy | undefined;
  /** If undefined, rankd does not serve Roblox's erasure webhook. */
  erasureSecret: Secret | undefined;
  at: (path: readonly PropertyKey[]) => string;
}

/** A setting without a value is `undefined`; its description in the schema explains the effect. */
export function toConfig(
  settings: Settings,
  choice: PlatformChoice,
  { files, targets, store, proxy, erasureSecret, at }: Resolved,
) {
  const { group, server, policy, security, limits, metrics, dashboard, history, audit, webhooks, log } = settings;
  return {
    platform: toPlatformConfig(settings, choice, { groupFile: files.groupFile, proxy }),
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
      stale: policy.stale,
      reason: policy.reason,
      rankerCheck: policy.ranker_check,
      minRankerRank: policy.min_ranker_rank,
      cooldowns: policy.cooldown,
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
    workspace:
      settings.workspace.id === undefined ? undefined : { id: settings.workspace.id, at: at(['workspace', 'id']) },
    security: { robloxId: security.roblox_id },
    limits: {
      rankPerMinute: limits.rank,
      rankBurst: limits.rank_burst,
      verifyPerMinute: limits.verify,
      placePerMinute: limits.place,
      failedAuthPerMinute: limits.failed_auth,
    },
    metrics,
    dashboard: { ...dashboard, url: dashboard.url, path: dashboard.path },
    retention: { historyMs: history.keep, auditMs: audit.keep },
    audit: { headFile: files.headFile },
    erasure: { secret: erasureSecret },
    webhooks: {
      timeoutMs: webhooks.timeout,
      allowPrivate: webhooks.allow_private,
      callerUrl: webhooks.caller_url,
      targets,
      /** Webhooks never use the proxy, but errors about unreachable targets mention it. */
      proxy,
    },
    discord: toDiscordConfig(settings.discord, at),
    store,
    nodeName: settings.store.node,
    log,
    compat: settings.compat,
    keys: settings.keys.map((key, index) => toDeclaredKey(key, (...path) => at(['keys', index, ...path]))),
  };
}

export interface OpenCloudConfig {
  kind: 'open-cloud';
  groupId: number;
  apiKey: Secret;
  /** Without a trailing slash, like the other base URLs. */
  baseUrl: string;
  legacyBaseUrl: string;
  usersBaseUrl: string;
  developBaseUrl: string;
  proxy?: OutboundProxy | undefined;
}

interface SimulatedConfig {
  kind: 'simulated';
  /** True if `platform.kind` is not set. */
  isDefault: boolean;
  groupId: number | undefined;
  /** The absolute path of a YAML file; `undefined` means the built-in group. */
  groupFile: string | undefined;
}

function toPlatformConfig(
  { group, platform }: Settings,
  choice: PlatformChoice,
  { groupFile, proxy }: { groupFile: string | undefined; proxy: OutboundProxy | undefined },
): OpenCloudConfig | SimulatedConfig {
  if (choice.kind === 'simulated') return { ...choice, groupId: group.id, groupFile };
  return {
    ...choice,
    baseUrl: platform.base_url,
    legacyBaseUrl: platform.legacy_base_url,
    usersBaseUrl: platform.users_base_url,
    developBaseUrl: platform.develop_base_url,
    proxy,
  };
}
