import type { CheckResult, DryRun } from '../change/test-rank.ts';
import { hintOf } from './error.ts';

/** Every check of a rank change that was only tried; `steps` is what would be written. */
export function dryRunDocument({ checks, approved }: DryRun) {
  return { allowed: approved !== undefined, steps: approved?.plan.steps ?? [], checks: checks.map(checkDocument) };
}

function checkDocument(result: CheckResult) {
  const { name, state } = result;
  if (result.state !== 'FAIL') return { name, state, detail: result.detail };
  const { code, message } = result.error;
  return { name, state, code, detail: message, try: hintOf(result.error) };
}
