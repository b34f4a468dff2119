import * as z from 'zod';
import { reasons } from '../../base/errors.ts';
import { version } from '../../base/version.ts';
import { type PublicCode, statuses } from '../errors.ts';
import { meanings } from './meanings.ts';
import type { Content, Operation } from './operation.ts';
import { operations } from './operations.ts';
import { answerHeaders, headersOfAll, parameters, schemas } from './parts.ts';

/** A schema as JSON Schema 2020-12, as far as rankd's own schemas use it. */
export interface JsonSchema {
  $ref?: string;
  type?: string;
  description?: string;
  required?: string[];
  properties?: Record<string, JsonSchema>;
  [keyword: string]: unknown;
}

/** The description of the HTTP API in OpenAPI 3.1. */
export function openApiDocument() {
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
    paths: Object.fromEntries(
      operations.map((operation) => [operation.path, { [operation.method]: toPath(operation) }]),
    ),
    components: {
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: 'A game key as `rankd key create` prints it: rk_live_… or rk_test_….',
        },
        keyHeader: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'The same key by itself.' },
      },
      parameters: mapValues(parameters, withJsonSchema),
      headers: mapValues(answerHeaders, withJsonSchema),
      schemas: mapValues(schemas, toJsonSchema),
    },
  };
}

/** A schema as clients send it. Answers are not transformed, so it is also how clients get them. */
export function toJsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input' });
  return json as JsonSchema;
}

/** The codes of an operation by status, ascending. */
export function byStatus({ codes }: Pick<Operation, 'codes'>): Array<[number, PublicCode[]]> {
  return [...Map.groupBy(codes, (code) => statuses[code])].toSorted(([a], [b]) => a - b);
}

function toPath(operation: Operation) {
  const { summary, description, key, body, answer, jsonAnswer } = operation;
  const success = {
    description: answer.description,
    headers: headerRefs([...headersOfAll, ...operation.answerHeaders]),
    content: { ...contentOf(answer), ...(jsonAnswer && contentOf(jsonAnswer)) },
  };
  const errors = byStatus(operation).map(([status, codes]) => [status, toError(codes, operation.answerHeaders)]);
  return {
    operationId: operation.id,
    summary,
    description,
    ...(key !== 'none' && { security: [{ key: [] }, ...(key === 'bearer' ? [] : [{ keyHeader: [] }])] }),
    ...(operation.parameters.length > 0 && {
      parameters: operation.parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })),
    }),
    ...(body !== undefined && {
      requestBody: { description: body.description, required: true, content: contentOf(body) },
    }),
    responses: { 200: success, ...Object.fromEntries(errors) },
  };
}

function toError(codes: PublicCode[], headers: Operation['answerHeaders']) {
  return {
    description: codes.map((code) => `\`${code}\`: ${meanings[code]}`).join('\n\n'),
    headers: headerRefs([...headersOfAll, 'Retry-After', ...headers]),
    content: {
      'application/json': {
        schema: {
          allOf: [{ $ref: '#/components/schemas/Error' }],
          properties: { code: { enum: codes }, error: { enum: codes.map((code) => reasons[code]) } },
        },
      },
    },
  };
}

function contentOf({ type = 'application/json', schema, example }: Content) {
  const described = schema === undefined ? {} : { schema: { $ref: `#/components/schemas/${schema}` } };
  return { [type]: { ...described, ...(example !== undefined && { example }) } };
}

function headerRefs(names: ReadonlyArray<keyof typeof answerHeaders>) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function withJsonSchema<T extends { schema: z.ZodType }>({ schema, ...rest }: T) {
  return { ...rest, schema: toJsonSchema(schema) };
}

function mapValues<T, U>(record: Record<string, T>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}
