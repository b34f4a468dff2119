import type { DomainEvent } from '../core/events.ts';
import type { Verdict } from '../core/verdict.ts';

/** What core allows. Throws its refusal: then the transaction is taken back. */
export function allowed<Change>(verdict: Verdict<Change>): { change: Change; events: DomainEvent[] } {
  if ('refusal' in verdict) throw verdict.refusal;
  return verdict;
}
