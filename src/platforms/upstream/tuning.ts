import { randomInt } from 'node:crypto';

export interface UpstreamTuning {
  /** How long one try may take. */
  perTryTimeoutMs: number;
  /** The longest wait before the second try; it doubles for each further one, up to `maxBackOffMs`. */
  backOffMs: number;
  maxBackOffMs: number;
  /** No try is begun with less time left: an answer could hardly arrive, and a write would end as unknown. */
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

/** How long to wait after so many tries (0 after the first). Full jitter: many calls' tries spread out instead of coming at once. */
export function backOffMs(tuning: UpstreamTuning, tries: number): number {
  return randomInt(Math.ceil(Math.min(tuning.maxBackOffMs, tuning.backOffMs * 2 ** tries)) + 1);
}
