import * as z from 'zod';
import { type ErrorCode, reasons } from '../../base/errors.ts';
import { version } from '../../base/version.ts';
import { meanings, type PublicCode, publicCodes, statuses } from '../errors.ts';
import { id, idempotencyKey } from '../fields.ts';
import {
  type AnswerHeader,
  allCodes,
  answerHeaders,
  type Content,
  commonHeaders,
  type DescribedRoute,
  isDescribed,
  ownHeaders,
  placeIdHelp,
  type Route,
} from '../route.ts';

/** JSON Schema 2020-12, limited to the keywords that rankd's schemas use. */
interface JsonSchema {
  type?: string | string[];
  description?: string;
  required?: string[];
  properties?: Record<string, JsonSchema>;
  [keyword: string]: unknown;
}

export const errorSchema = z.strictObject({
  success: z.literal(false),
  error: z.string().describe('The short reason of the code.'),
  code: z.enum(publicCodes as [PublicCode, ...PublicCode[]]).describe('The error code, which is stable.'),
  message: z.string().describe("One sentence for the game's owner: the problem and, if possible, the fix."),
  requestId: answerHeaders['x-request-id'].schema,
  retryAfter: answerHeaders['Retry-After'].schema.optional().describe('Seconds to wait; present if waiting helps.'),
});

export function openApiDocument(routes: readonly Route[]) {
  const described = routes.filter(isDescribed);
  return {
    openapi: '3.1.1',
    info: {
      title: 'rankd',
      version,
      license: { name: 'MIT', identifier: 'MIT' },
      description:
        'Changes ranks in one Roblox group for the games that are allowed to. Every answer that is not 200 is one JSON object with the same fields; ids are whole numbers up to 2^53-1, or the same as decimal strings.',
    },
    servers: [{ url: '/', description: 'The rankd that serves this document.' }],
    security: [],
    paths: Object.fromEntries(described.map((route) => [route.path, { [methodOf(route)]: operationOf(route) }])),
    components: {
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: 'A game key as `rankd key create` prints it: rk_live_… or rk_test_….',
        },
        keyHeader: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'The game key, without `Bearer`.' },
      },
      headers: mapValues(answerHeaders, ({ description, schema }) => ({ description, schema: toJsonSchema(schema) })),
      schemas: schemasOf(described),
    },
  };
}

/** Returns the JSON Schema of a schema's input, before zod's transforms. Response schemas have no transforms. */
function toJsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input' });
  return json as JsonSchema;
}

function schemasOf(routes: readonly DescribedRoute[]): Record<string, JsonSchema> {
  const contents = routes.flatMap(({ body, answers = [] }) => [...(body ? [body] : []), ...answers]);
  const named = contents.flatMap(({ name, schema }) => (name && schema ? [[name, toJsonSchema(schema)] as const] : []));
  return { ...Object.fromEntries(named), Error: toJsonSchema(errorSchema) };
}

function operationOf(route: DescribedRoute) {
  const { docs, key, body, answers = [] } = route;
  const parameters = parametersOf(route);
  const success = {
    description: answers[0]?.description ?? '',
    headers: headerRefs([...commonHeaders, ...ownHeaders(route)]),
    content: Object.assign({}, ...answers.map(contentOf)),
  };
  const errors = codesByStatus(route).map(([status, codes]) => [status, errorOf(codes, route)]);
  return {
    operationId: docs.id,
    summary: docs.summary,
    description: docs.description,
    ...(key !== undefined && { security: [{ key: [] }, ...(key.in === 'bearer' ? [] : [{ keyHeader: [] }])] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: { description: body.description, required: true, content: contentOf(body) },
    }),
    responses: { 200: success, ...Object.fromEntries(errors) },
  };
}

interface Parameter {
  name: string;
  in: 'query' | 'header';
  required: boolean;
  description: string;
  schema: JsonSchema;
}

function parametersOf({ key, query, changesRanks = false }: Route): Parameter[] {
  const ofQuery = query instanceof z.ZodObject ? Object.entries<z.ZodType>(query.shape) : [];
  return [
    ...ofQuery.map(([name, schema]) => parameter(name, schema)),
    ...(key === undefined || key.place === 'body' ? [] : [key.place === 'query' ? requiredPlace : optionalPlace]),
    ...(changesRanks ? [idempotency] : []),
  ];
}

function parameter(name: string, field: z.ZodType): Parameter {
  const { description = '' } = field;
  const required = !field.safeParse(undefined).success;
  let schema = field;
  while (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) schema = schema.unwrap() as z.ZodType;
  return { name, in: 'query', required, description, schema: toJsonSchema(schema) };
}

const requiredPlace = parameter('placeid', id.describe(placeIdHelp));
const optionalPlace = parameter(
  'placeid',
  id
    .optional()
    .describe(
      'The place id (game.PlaceId). Without it, rankd uses the `Roblox-Id` header, which Roblox adds to requests from its game servers. A key made with `--any-place` needs neither.',
    ),
);
const idempotency: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'rankd stores the first outcome for 24 hours and replays it to every request with the same key and content.',
  schema: toJsonSchema(idempotencyKey),
};

function codesByStatus(route: Route): Array<[number, PublicCode[]]> {
  return [...Map.groupBy(allCodes(route), (code) => statuses[code])].toSorted(([a], [b]) => a - b);
}

function errorOf(codes: PublicCode[], route: Route) {
  return {
    description: codes.map((code) => `\`${code}\`: ${meanings[code]}`).join('\n\n'),
    headers: headerRefs([...commonHeaders, 'Retry-After', ...ownHeaders(route)]),
    content: {
      'application/json': {
        schema: {
          allOf: [{ $ref: '#/components/schemas/Error' }],
          properties: { code: { enum: codes }, error: { enum: codes.map((code: ErrorCode) => reasons[code]) } },
        },
      },
    },
  };
}

function contentOf({ type = 'application/json', name, example }: Content) {
  const described = name === undefined ? {} : { schema: { $ref: `#/components/schemas/${name}` } };
  return { [type]: { ...described, ...(example !== undefined && { example }) } };
}

function headerRefs(names: readonly AnswerHeader[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function mapValues<T, U>(record: Record<string, T>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}

function methodOf({ method }: Route): string {
  return method.toLowerCase();
}

export function anchorOf(route: Route): string {
  return `${methodOf(route)}${route.path.replaceAll('/', '-')}`;
}

// The functions named `…Rows` return table rows with cells in Markdown, for /docs and docs/api.md.

/** Returns one row for each field of an object schema, and no rows for other schemas. */
export function fieldRows(schema: z.ZodType): string[][] {
  const { properties = {}, required = [] } = toJsonSchema(schema);
  return Object.entries(properties).map(([name, field]) => {
    return [`\`${name}\``, typeOf(field), required.includes(name) ? '' : 'optional', field.description ?? ''];
  });
}

export function parameterRows(route: Route): string[][] {
  return parametersOf(route).map(({ name, in: where, description }) => [`\`${name}\``, where, description]);
}

/** Returns a route's response headers other than the common ones; without a route, the headers of every error. */
export function headerRows(route?: Route): string[][] {
  const names: AnswerHeader[] = route === undefined ? [...commonHeaders, 'Retry-After'] : ownHeaders(route);
  return names.map((name) => [`\`${name}\``, answerHeaders[name].description]);
}

export function errorRows(route: Route): string[][] {
  return codesByStatus(route).flatMap(([status, codes]) =>
    codes.map((code) => [String(status), `\`${code}\``, reasons[code], meanings[code]]),
  );
}

/**
 * Describes a type, e.g. `whole number or text`. For an object or a list of objects, adds the fields in parentheses.
 */
function typeOf({ type = '', anyOf, enum: values, items, properties }: JsonSchema): string {
  if (Array.isArray(type)) return type.map((one: string) => typeWords[one]).join(' or ');
  if (Array.isArray(anyOf)) return [...new Set((anyOf as JsonSchema[]).map(typeOf))].join(' or ');
  if (Array.isArray(values)) return values.map((value) => `\`${JSON.stringify(value)}\``).join(' or ');
  const fields = Object.keys(properties ?? (items as JsonSchema | undefined)?.properties ?? {});
  const names = fields.map((name) => `\`${name}\``).join(', ');
  return `${typeWords[type] ?? ''}${names === '' ? '' : ` (${names})`}`;
}

const typeWords: Record<string, string> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  array: 'list',
  object: 'object',
  null: 'null',
};

export function requestExamples({ path, key, body }: Route): string[] {
  if (body === undefined) return [];
  const example = Object.entries(Object(body.example));
  // Otherwise, the place is in the body, or Roblox adds it in the Roblox-Id header.
  const needsPlace = key?.place === 'query';
  const takesPlace = key !== undefined && key.place !== 'body';
  return [forShell(`${path}${takesPlace ? '?placeid=1' : ''}`, example), forGame(path, needsPlace, example)];
}

function forShell(address: string, example: Array<[string, unknown]>): string {
  const json = JSON.stringify(Object.fromEntries(example));
  return `curl -sw '\\n' 'http://127.0.0.1:7265${address}' -H "Authorization: Bearer $(cat my-game.key)" -d '${json}'`;
}

function forGame(path: string, needsPlace: boolean, example: Array<[string, unknown]>): string {
  const fields = example.map(
    ([name, value]) => `        ${name} = ${name === 'placeid' ? 'game.PlaceId' : JSON.stringify(value)},\n`,
  );
  return `local HttpService = game:GetService("HttpService")
local response = HttpService:RequestAsync({
    Url = "https://rankd.example.com${path}${needsPlace ? '?placeid=" .. game.PlaceId' : '"'},
    Method = "POST",
    Headers = {
        Authorization = HttpService:GetSecret("rankd"):AddPrefix("Bearer "),
        ["Content-Type"] = "application/json",
    },
    Body = HttpService:JSONEncode({
${fields.join('')}    }),
})
print(response.StatusCode, response.Body)`;
}
