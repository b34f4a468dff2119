import type { PublicCode } from '../errors.ts';

/** When a caller gets each code. */
export const meanings = {
  missing_placeid: 'The request names no place id, and the key needs one.',
  invalid_request:
    'It is not HTTP or not JSON, or a field is missing or of the wrong type; the message names each one.',
  missing_authorization: 'There is no header `Authorization: Bearer <game key>`.',
  invalid_key: 'The key is not accepted; the log and the audit of rankd say why.',
  place_not_whitelisted:
    'The place is not on the whitelist of this key, its entry is disabled, or the header Roblox-Id tells another place.',
  key_not_allowed: 'The key lacks the scope of this operation, or changes ranks in the other direction only.',
  rank_not_allowed: "The rank is above a ceiling, locked, off the ladder, the guests' or the owner's.",
  member_protected: 'The member, or a role the member holds, is protected by the policy.',
  ranker_not_allowed: 'The policy does not let this ranker make this change.',
  above_acting_account: 'The account that rankd acts with may not touch this member or role.',
  member_not_found: 'The rankee is not in the group.',
  unknown_rank: 'The group has no such rank or role; the message lists those it has.',
  ambiguous_rank: 'Two roles share that rank number; send the role id.',
  ambiguous_name: 'Two roles have that name; send the role id.',
  no_further_rank: 'The member already has the highest or lowest rank that can be given.',
  configuration_misfit:
    'A setting of rankd names a role that the group no longer has, and this change depends on it; only the operator can correct that.',
  user_not_found: 'No user of Roblox has that name.',
  user_renamed: 'The user only once had that name; send the user id or the name of today, which the message tells.',
  idempotency_mismatch: 'The Idempotency-Key was used for another request.',
  idempotency_in_progress: 'The first request with this Idempotency-Key is still running.',
  not_found: 'There is nothing at this address.',
  method_not_allowed: 'The address takes other methods; `Allow` names them.',
  request_timeout: 'The request took too long to arrive.',
  body_too_large: 'The body is larger than 64 KiB.',
  headers_too_large: 'The headers are larger than 16 KiB.',
  cooldown: "The member's rank was changed, or the ranker changed one, a moment ago.",
  too_many_requests:
    'More requests than an inbound limit allows: of the key, of the place, of a key for one member at once, or of an address that sends wrong keys.',
  member_suspended: 'The member is suspended for a time; until then nobody else changes the rank.',
  already_suspended: 'The member is suspended already; the message says until when.',
  not_suspended: 'The member is not suspended.',
  suspended_by_operator: 'The operator suspended the member, and alone can lift that.',
  key_paused: 'The circuit breaker or the operator paused the key; the operator resumes it.',
  internal: 'Something went wrong inside rankd; its log says what.',
  platform_rejected: 'Roblox refused the change for a reason of its own.',
  platform_credential: 'Roblox does not accept the credential that rankd acts with.',
  platform_busy: "No room in Roblox's rate limit before the deadline; nothing was changed.",
  platform_unavailable: 'Roblox does not answer, or there was no time left to ask it; nothing was changed.',
  store_unavailable: 'The database of rankd cannot be written or read.',
  shutting_down: 'rankd is stopping or restarting.',
  outcome_unknown: 'The change was sent and could not be confirmed yet; rankd goes on finding out.',
} as const satisfies Record<PublicCode, string>;
