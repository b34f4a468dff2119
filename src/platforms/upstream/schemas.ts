/** The subset of JSON Schema that the official OpenAPI document uses for group resources. */
export interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  $ref?: string;
}

export type Schemas = Record<string, Schema>;

const text: Schema = { type: 'string' };
const integer: Schema = { type: 'integer' };
const flag: Schema = { type: 'boolean' };
const texts: Schema = { type: 'array', items: text };
const times = { createTime: text, updateTime: text };

/** From the official OpenAPI document of 2026-08. */
const rolePermissions = `
  acceptRequests advertiseGroup banMembers bypassSlowMode changeRank
  createApiKeys createAvatarItems createComments createGroupShout createPosts
  createWallPosts deleteWallPosts exileMembers lockPosts manageApiKeys
  manageAvatarItems manageBlockedWords manageCategories manageGroupUniverses manageRelationships
  pinPosts removeComments removePosts spendGroupFunds viewAuditLog
  viewBlockedWords viewForums viewGroupShout viewUniverseAnalytics viewWallPosts`
  .trim()
  .split(/\s+/);

/**
 * The fields of Roblox's requests and responses. Group resources follow the official OpenAPI document of 2026-08. The
 * required fields are those that rankd expects in every response.
 */
export const committedSchemas = {
  Group: object(
    {
      path: text,
      ...times,
      id: text,
      displayName: text,
      description: text,
      owner: text,
      memberCount: integer,
      publicEntryAllowed: flag,
      locked: flag,
      verified: flag,
    },
    ['id', 'displayName'],
  ),
  GroupRole: object(
    {
      path: text,
      ...times,
      id: text,
      displayName: text,
      description: text,
      rank: integer,
      memberCount: integer,
      permissions: object(Object.fromEntries(rolePermissions.map((name) => [name, flag]))),
    },
    ['id', 'displayName', 'rank'],
  ),
  GroupMembership: object({ path: text, ...times, user: text, role: text, roles: texts }, ['user', 'role', 'roles']),
  ListGroupRolesResponse: object({ groupRoles: listOf('GroupRole'), nextPageToken: text }, ['groupRoles']),
  ListGroupMembershipsResponse: object({ groupMemberships: listOf('GroupMembership'), nextPageToken: text }, [
    'groupMemberships',
  ]),
  AssignRoleGroupMembershipRequest: object({ role: text }, ['role']),
  UnassignRoleGroupMembershipRequest: object({ role: text }, ['role']),
  /** The response to key introspection, from the guide to API keys and from responses that others have published. */
  ApiKey: object(
    {
      name: text,
      authorizedUserId: integer,
      scopes: {
        type: 'array',
        items: object({ name: text, operations: texts, groupIds: texts }, ['name', 'operations']),
      },
      enabled: flag,
      expired: flag,
      expirationTimeUtc: text,
    },
    ['authorizedUserId', 'scopes', 'enabled', 'expired'],
  ),
  PublicRoleList: object(
    {
      groupId: integer,
      roles: {
        type: 'array',
        items: object(
          {
            ...{ id: integer, name: text, description: text, rank: integer, memberCount: integer, isBase: flag },
            color: integer,
          },
          ['id', 'isBase'],
        ),
      },
    },
    ['roles'],
  ),
  User: object(
    {
      ...{ path: text, ...times, id: text, name: text, displayName: text, about: text, locale: text },
      ...{ premium: flag, idVerified: flag },
      socialNetworkProfiles: object(
        { facebook: text, twitter: text, youtube: text, twitch: text, guilded: text, visibility: text },
        [],
      ),
    },
    ['id', 'name'],
  ),
  /** The response to usernames/users, from the OpenAPI document of users.roblox.com. */
  NamedUserList: object(
    {
      data: {
        type: 'array',
        items: object({ requestedUsername: text, hasVerifiedBadge: flag, id: integer, name: text, displayName: text }, [
          'requestedUsername',
          'id',
          'name',
        ]),
      },
    },
    ['data'],
  ),
  /** From the OpenAPI document of develop.roblox.com. */
  PlaceList: object(
    {
      ...{ previousPageCursor: text, nextPageCursor: text },
      data: {
        type: 'array',
        items: object({ id: integer, universeId: integer, name: text, description: text }, ['id', 'name']),
      },
    },
    ['data'],
  ),
} satisfies Schemas;

export type SchemaName = keyof typeof committedSchemas;

/**
 * Returns the differences between a response and its schema, without list positions, so that each difference appears
 * only once.
 */
export function deviations(json: unknown, name: SchemaName): string[] {
  const found = mismatches(json, name, committedSchemas);
  return [...new Set(found.map((flaw) => flaw.replaceAll(/\[\d+\]/g, '[]')))];
}

export function mismatches(value: unknown, name: string, schemas: Schemas): string[] {
  return compare(value, { $ref: `#/components/schemas/${name}` }, schemas, name);
}

function compare(value: unknown, schema: Schema, schemas: Schemas, at: string): string[] {
  if (schema.$ref !== undefined) {
    const target = schemas[schema.$ref.replace('#/components/schemas/', '')];
    return target === undefined ? [`${at}: no schema ${schema.$ref}`] : compare(value, target, schemas, at);
  }
  if (typeOf(value) !== schema.type) return [`${at}: ${typeOf(value)} instead of ${schema.type}`];
  if (Array.isArray(value))
    return value.flatMap((item, index) => compare(item, schema.items ?? {}, schemas, `${at}[${index}]`));
  if (typeof value !== 'object' || value === null) return [];
  // JSON generated from protobuf can contain null instead of omitting a field.
  const described = Object.entries(value).filter(([, inner]) => inner !== null);
  const missing = (schema.required ?? [])
    .filter((field) => !described.some(([name]) => name === field))
    .map((field) => `${at}.${field}: missing`);
  const wrong = described.flatMap(([field, inner]) => {
    const expected = schema.properties?.[field];
    return expected === undefined
      ? [`${at}.${isName(field) ? field : '?'}: unknown field`]
      : compare(inner, expected, schemas, `${at}.${field}`);
  });
  return [...missing, ...wrong];
}

/** True if the key looks like one of the platform's field names. Any other key could be a value, such as an id. */
function isName(field: string): boolean {
  return /^[A-Za-z]\w{0,39}$/.test(field);
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (value === null) return 'null';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

function object(properties: Record<string, Schema>, required: string[] = []): Schema {
  return { type: 'object', properties, required };
}

function listOf(name: string): Schema {
  return { type: 'array', items: { $ref: `#/components/schemas/${name}` } };
}
