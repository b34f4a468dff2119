import type { RankdError } from '../base/errors.ts';
import type { DomainEvent } from './events.ts';

/** What core makes of facts: a change that a store carries out together with its events, or why there is none. */
export type Verdict<Change> = { change: Change; events: DomainEvent[] } | { refusal: RankdError };
