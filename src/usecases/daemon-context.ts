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

/** The context of a daemon under one configuration: for its HTTP API, its workers and its metrics. It never changes. */
export interface DaemonContext extends Readonly<Ranking> {
  readonly log: Logger;
  /**
   * The secret identity with which it proves over the internet that it is the daemon of its data directory
   * (`src/core/proof.ts`).
   */
  readonly identity: string;
  readonly refused: RefusedCallers;
  readonly keyUses: KeyUses;
  readonly gameModules: GameModules;
  readonly requests: OpenRequests;
  /** The number of connections that began with a protocol other than HTTP/1.1, by protocol. */
  readonly foreign: ForeignProtocols;
  /** The reason the platform is not called at present; `undefined` while its credential works. */
  readonly deadCredential: () => RankdError | undefined;
  /** The times of the last successful read and write of the platform, in epoch milliseconds; 0 if there was none. */
  readonly platformWorkedAt: () => { read: number; write: number };
  /** The platform's latest report on its credential. */
  readonly latestCredential: () => Credential | undefined;
  readonly limits: LimitsConfig;
  readonly retention: RetentionConfig;
  /** The absolute path of the file with the audit's heads. */
  readonly headFile: string | undefined;
  /** The treatment of requests whose header Roblox-Id does not match the place they name. */
  readonly robloxId: Config['security']['robloxId'];
  /** Sends events to webhooks. */
  readonly sender: WebhookSender;
  readonly webhooks: WebhookSettings;
  /** The imitated services. */
  readonly compat: Config['compat'];
  readonly deliveries: DeliveryCounts;
  /** The secret of Roblox's right-to-erasure webhook; `undefined` if that is not configured. */
  readonly erasureSecret: Config['erasure']['secret'];
  /** `undefined` if ranking from Discord is not configured. */
  readonly discord: Config['discord'];
  /** When the last request that Discord had signed arrived (epoch milliseconds). */
  readonly discordSeen: { lastAt?: number };
}

/** A daemon's present context: a reload replaces it as a whole. */
export interface LiveContext {
  readonly current: DaemonContext;
}

export type ForeignProtocols = Record<'TLS' | 'HTTP/2' | 'the PROXY protocol', number>;

/** The requests to the API without an answer so far. */
interface OpenRequests {
  count: number;
  /** True once the daemon is stopping: running requests are finished, new ones are refused. */
  isDraining: boolean;
  /** True once a trusted proxy has passed on a request that reached it over TLS. */
  haveComeOverTls: boolean;
}

/** Unexpected behavior of the platform so far. */
export function surprisesOf({ trust, platform }: Pick<DaemonContext, 'trust' | 'platform'>): Surprise[] {
  return [...trust.surprises, ...platform.surprises()];
}
