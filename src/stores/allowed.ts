import type { DomainEvent } from '../core/events.ts';
import type { Verdict } from '../core/verdict.ts';

/** Returns the change that core allows. Throws its refusal, which rolls back the transaction. */
export function allowed<Change>(verdict: Verdict<Change>): { change: Change; events: DomainEvent[] } {
  if ('refusal' in verdict) throw verdict.refusal;
  return verdict;
}
