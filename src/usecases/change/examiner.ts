import type { RankdError } from '../../base/errors.ts';

/** Makes the checks of a change: a real change stops at the first refusal, a dry run lists them all. */
export interface Examiner {
  /** A check whose result later checks need. Throws its refusal. */
  find<T>(name: string, check: () => Promise<T>, describe: (found: T) => string): Promise<T>;
  /** A check with only two results: allowed (`undefined`) or the refusal. */
  hold(name: string, refusal: RankdError | undefined): void;
}

/** Stops at the first refusal by throwing it. */
export const strict: Examiner = {
  find: (_name, check) => check(),
  hold: (_name, refusal) => {
    if (refusal !== undefined) throw refusal;
  },
};
