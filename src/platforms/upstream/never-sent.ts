/** Failures of name resolution, connecting and TLS: no request has left this machine. */
const beforeSending = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ENETDOWN',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_SSL_WRONG_VERSION_NUMBER',
]);

/** True if the error that `fetch` threw proves that the request did not reach the platform. When in doubt it counts as sent. */
export function wasNeverSent(thrown: unknown): boolean {
  const codes = codesOf(thrown);
  return codes.length > 0 && codes.every((code) => beforeSending.has(code));
}

/** The codes of the innermost errors. `fetch` wraps an error as a cause, and the errors of several addresses as a list. */
function codesOf(thrown: unknown): string[] {
  if (!(thrown instanceof Error)) return [];
  if (thrown instanceof AggregateError && thrown.errors.length > 0) return thrown.errors.flatMap(codesOf);
  if (thrown.cause instanceof Error) return codesOf(thrown.cause);
  return 'code' in thrown && typeof thrown.code === 'string' ? [thrown.code] : ['unknown'];
}
