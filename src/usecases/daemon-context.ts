import type { RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { Surprise } from '../base/surprises.ts';
import type { Config, LimitsConfig, RetentionConfig } from '../config/config.ts';
import type { Credential } from '../core/model.ts';
import type { WebhookSender } from '../ports/index.ts';
import type { Ranking } from './change/ranking.ts';
import type { GameModules, KeyUses } from './keys/key-uses.ts';
import type { RefusedCallers } from './upkeep/refused-callers.ts';
import type { DeliveryCounts } from './webhooks/deliver.ts';
import type { WebhookSettings } from './webhooks/send.ts';

/**
 * Everything that a daemon's HTTP API, workers and metrics need under the current configuration. A reload creates a new
 * context.
 */
export interface DaemonContext extends Readonly<Ranking> {
  readonly log: Logger;
  /** The secret with which the daemon proves its identity over the internet (`src/core/proof.ts`). */
  readonly identity: string;
  readonly refused: RefusedCallers;
  readonly keyUses: KeyUses;
  readonly gameModules: GameModules;
  readonly requests: OpenRequests;
  /** Counts the connections that began with a protocol other than HTTP/1.1. */
  readonly foreign: ForeignProtocols;
  /** Returns the error with which calls that need the credential fail; `undefined` while the credential works. */
  readonly deadCredential: () => RankdError | undefined;
  /** Returns the times of the last successful read and write on the platform, in epoch milliseconds; 0 means never. */
  readonly platformSucceededAt: () => { read: number; write: number };
  /** Returns the platform's latest report on the credential; `undefined` before the first one. */
  readonly latestCredential: () => Credential | undefined;
  readonly limits: LimitsConfig;
  readonly retention: RetentionConfig;
  readonly headFile: string | undefined;
  /** The rule for requests whose Roblox-Id header does not match their place. */
  readonly robloxId: Config['security']['robloxId'];
  readonly sender: WebhookSender;
  readonly webhooks: WebhookSettings;
  /** The services whose APIs rankd imitates. */
  readonly compat: Config['compat'];
  readonly deliveries: DeliveryCounts;
  /** The secret for Roblox's right-to-erasure webhook; `undefined` if that webhook is not configured. */
  readonly erasureSecret: Config['erasure']['secret'];
  /** `undefined` if ranking from Discord is not configured. */
  readonly discord: Config['discord'];
  /** `lastAt`: the time of the last request with a valid Discord signature (epoch milliseconds). */
  readonly discordSeen: { lastAt?: number };
}

/** Holds the daemon's current context, which a reload replaces as a whole. */
export interface LiveContext {
  readonly current: DaemonContext;
}

export type ForeignProtocols = Record<'TLS' | 'HTTP/2' | 'the PROXY protocol', number>;

interface OpenRequests {
  count: number;
  /** True once the daemon is stopping: it finishes requests in flight and refuses new ones that need a key. */
  isDraining: boolean;
  /** True once a trusted proxy has forwarded a request that it received over TLS. */
  hasSeenTls: boolean;
}

export function surprisesOf({ trust, platform }: Pick<DaemonContext, 'trust' | 'platform'>): Surprise[] {
  return [...trust.surprises, ...platform.surprises()];
}
