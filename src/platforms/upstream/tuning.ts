import { randomInt } from 'node:crypto';
import { doubling } from '../../base/time.ts';

export interface UpstreamTuning {
  /** How long one try may take. */
  perTryTimeoutMs: number;
  /** The longest wait before the second try. It doubles for each further try, up to `maxBackOffMs`. */
  backOffMs: number;
  maxBackOffMs: number;
  /** No try begins with less time left, or with less than the platform takes to answer at present: a write would end as unknown. */
  shortestTryMs: number;
  maxBodyBytes: number;
}

export const defaultTuning: UpstreamTuning = {
  perTryTimeoutMs: 5_000,
  backOffMs: 250,
  maxBackOffMs: 4_000,
  shortestTryMs: 100,
  maxBodyBytes: 1024 * 1024,
};

/** The wait in milliseconds after so many tries (0 after the first). Full jitter spreads out the tries of many calls. */
export function backOffMs(tuning: UpstreamTuning, tries: number): number {
  return randomInt(Math.ceil(doubling(tuning.backOffMs, tuning.maxBackOffMs)(tries)) + 1);
}
