import type { RankdError } from '../base/errors.ts';
import type { DomainEvent } from './events.ts';

/** Core's judgement of facts: a change for the store to save together with its events, or a refusal. */
export type Verdict<Change> = { change: Change; events: DomainEvent[] } | { refusal: RankdError };
