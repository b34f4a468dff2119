import { asRankdError } from '../../base/errors.ts';
import { hintOf } from '../../usecases/documents/error.ts';

/** What one check found. `warn`: works, but should be looked at; `FAIL`: keeps rankd, or a part of it, from working. */
export interface Finding {
  check: string;
  grade: 'ok' | 'warn' | 'FAIL';
  text: string;
  /** What mends it: a command, or what to do. */
  fix?: string;
}

export function ok(check: string, text: string): Finding {
  return { check, grade: 'ok', text };
}

export function warn(check: string, text: string, fix: string): Finding {
  return { check, grade: 'warn', text, fix };
}

export function fail(check: string, text: string, fix: string): Finding {
  return { check, grade: 'FAIL', text, fix };
}

/** The findings of `work`; what it throws is a finding too, so that one check never keeps the others from being made. */
export async function examined(check: string, work: () => Finding[] | Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await work();
  } catch (cause) {
    const error = asRankdError(cause);
    return [fail(check, error.message, hintOf(error))];
  }
}
