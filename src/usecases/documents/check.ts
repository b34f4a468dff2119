import type { CheckResult } from '../change/test-rank.ts';
import { hintOf } from './error.ts';

/** One check of a dry run. */
export function checkDocument(result: CheckResult) {
  const { name, state } = result;
  if (result.state !== 'FAIL') return { name, state, detail: result.detail };
  const { code, message } = result.error;
  return { name, state, code, detail: message, try: hintOf(result.error) };
}
