import type { LiveFinding } from '../../ports/index.ts';

/** `ok` is false if one check FAILs: something does not work. Mere differences leave it true. */
export function liveDocument(checks: LiveFinding[]) {
  return { ok: checks.every(({ result }) => result !== 'FAIL'), checks };
}

/** The text without any number long enough to be an id. */
export function withoutIds(text: string): string {
  return text.replaceAll(/\d{4,}/g, 'ID');
}
