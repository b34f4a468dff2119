import { asRankdError } from '../../base/errors.ts';
import { inWords } from '../../base/files.ts';
import type { LiveFinding } from '../../ports/index.ts';
import { hintOf } from '../error-document.ts';

/**
 * The result of one check. `warn`: rankd works, but something needs attention. `FAIL`: all or part of rankd does not
 * work.
 */
export interface Finding {
  check: string;
  grade: 'ok' | 'warn' | 'FAIL';
  text: string;
  /** A command, or another step for the operator. */
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

export function findingsDocument(findings: Finding[]) {
  const isFine = findings.every(({ grade }) => grade !== 'FAIL');
  return { ok: isFine, findings: findings.map((one) => ({ ...one, fix: one.fix ?? null })) };
}

/**
 * Runs a check, and turns an error into a finding, so that one failing check never prevents the others. Reports an
 * unreachable platform under `platform` instead of `check`.
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

export function liveDocument(checks: LiveFinding[]) {
  return { ok: checks.every(({ result }) => result !== 'FAIL'), checks };
}

/** Masks every number that is long enough to be an id. */
export function withoutIds(text: string): string {
  return text.replaceAll(/\d{4,}/g, 'ID');
}
