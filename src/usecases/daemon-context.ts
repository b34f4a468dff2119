import type { RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { Config, LimitsConfig } from '../config/config.ts';
import type { Credential } from '../core/model.ts';
import type { Ranking } from './change/ranking.ts';
import type { KeyUses } from './keys/key-uses.ts';
import type { RefusedCallers } from './upkeep/refused-callers.ts';

/** What a daemon works with: its HTTP API, its workers and its metrics. */
export interface DaemonContext extends Ranking {
  log: Logger;
  refused: RefusedCallers;
  keyUses: KeyUses;
  /** Why the platform is not called at present; `undefined` while its credential works. */
  deadCredential: () => RankdError | undefined;
  /** What the platform said of its credential when it was last asked. */
  latestCredential: () => Credential | undefined;
  limits: LimitsConfig;
  /** What becomes of requests whose header Roblox-Id does not fit the place they name. */
  robloxId: Config['security']['robloxId'];
  /** True once the daemon is stopping: what runs is finished, nothing new is begun. */
  isDraining: boolean;
  /** Requests to the API that are not answered yet. */
  inFlight: number;
}
