import { type FakeAnswer, gatewayError, json, permissionDenied, type Refused } from './answers.ts';

/** The only key that the fake accepts, as introspection reports it. */
export interface FakeCredential {
  apiKey: string;
  /** The acting account. */
  userId: number;
  enabled: boolean;
  expired: boolean;
  expirationTimeUtc?: string;
  /** If absent, introspection reports no scopes, and the key can do everything. */
  scopes?: Array<{ name: string; operations: string[]; groupIds?: string[] }> | undefined;
  /** Replaces `scopes` in introspection, in a shape that Roblox has never been observed to return. */
  oddScopes?: unknown;
}

/** Checks the key as Roblox's gateway does: throws a 401 response if it is missing, unknown, disabled or expired. */
export function authenticate(credential: FakeCredential, presented: string | undefined): void {
  const isAlive = credential.enabled && !credential.expired;
  if (presented !== credential.apiKey || !isAlive) throw gatewayError(401, 0, 'Invalid API Key');
}

export function hasScope({ scopes }: FakeCredential, operation: 'read' | 'write', groupId: number): boolean {
  if (scopes === undefined) return true;
  return scopes.some(
    ({ name, operations, groupIds = ['*'] }) =>
      name === 'group' && operations.includes(operation) && groupIds.some((id) => id === '*' || id === String(groupId)),
  );
}

export function insufficientScope(): Refused {
  return permissionDenied('The key lacks the scope that this operation needs.');
}

/** Describes the key in the body as Roblox does, even if the key is disabled or expired. */
export function introspect(credential: FakeCredential, body: Record<string, unknown>): FakeAnswer {
  if (body['apiKey'] !== credential.apiKey) throw gatewayError(401, 0, 'Invalid API Key');
  const { userId, enabled, expired, expirationTimeUtc, oddScopes } = credential;
  const scopes = oddScopes ?? credential.scopes;
  return json(200, { name: 'rankd', authorizedUserId: userId, scopes, enabled, expired, expirationTimeUtc });
}
