import { asRankdError } from '../../base/errors.ts';
import { inWords } from '../../base/files.ts';
import type { LiveFinding } from '../../ports/index.ts';
import { hintOf } from '../error-document.ts';

/**
 * The result of one check. `warn`: it works, but needs attention. `FAIL`: it stops rankd, or a part of it, from
 * working.
 */
export interface Finding {
  check: string;
  grade: 'ok' | 'warn' | 'FAIL';
  text: string;
  /** The fix: a command, or another action. */
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

/** Always has the same fields; `fix` is null if there is none. `ok` is false if one check FAILs. */
export function findingsDocument(findings: Finding[]) {
  const isFine = findings.every(({ grade }) => grade !== 'FAIL');
  return { ok: isFine, findings: findings.map((one) => ({ ...one, fix: one.fix ?? null })) };
}

/**
 * The findings of `work`. An error is a finding, too, so one check never prevents the others. An unreachable platform
 * does not belong to any single check.
 */
export async function examined(check: string, work: () => Finding[] | Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await work();
  } catch (cause) {
    const error = asRankdError(inWords(cause));
    const isUnreached = error.code === 'platform_unavailable' && error.connection !== undefined;
    return [fail(isUnreached ? 'platform' : check, error.message, hintOf(error))];
  }
}

/** `ok` is false if one check FAILs: something does not work. Mere differences leave it true. */
export function liveDocument(checks: LiveFinding[]) {
  return { ok: checks.every(({ result }) => result !== 'FAIL'), checks };
}

/** The text without any number long enough to be an id. */
export function withoutIds(text: string): string {
  return text.replaceAll(/\d{4,}/g, 'ID');
}
