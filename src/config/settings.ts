import * as z from 'zod';
import { settingsSchema } from './schema.ts';

/** One setting, as the README's table, the environment and `config show` need it. */
export interface Setting {
  /** e.g. `server.port`. */
  path: string;
  /** e.g. `RANKD_SERVER_PORT`; `undefined` where no variable can say it. */
  env: string | undefined;
  description: string;
  /** As the file would say it; `undefined` where the setting is off, or follows from others, unless given. */
  default: unknown;
  type: 'text' | 'number' | 'boolean' | 'numbers' | 'texts' | 'mappings';
}

const schema = jsonSchema();

/** Every setting, in the order of the schema. */
export const settings: readonly Setting[] = leaves(schema, []);

/** Every mapping that groups settings, e.g. `policy` and `policy.breaker`. */
export const sections: ReadonlySet<string> = new Set(settings.flatMap(({ path }) => parents(path)));

/** Every setting of an entry of `keys`: its name, description, default, and whether it must be there. */
export const keySettings: ReadonlyArray<Pick<Setting, 'path' | 'description' | 'default'> & { isRequired: boolean }> =
  entrySettings(schema.properties?.['keys']?.items ?? {});

/** The schema of `rankd.yaml` as JSON Schema 2020-12, for editors. */
export function jsonSchema(): JsonSchema {
  return z.toJSONSchema(settingsSchema, { io: 'input' }) as JsonSchema;
}

/** The part of JSON Schema that describes settings. */
export interface JsonSchema {
  type?: string;
  description?: string;
  default?: unknown;
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  required?: string[];
}

function leaves(schema: JsonSchema, parents: string[]): Setting[] {
  if (schema.properties !== undefined) {
    return Object.entries(schema.properties).flatMap(([name, child]) => leaves(child, [...parents, name]));
  }
  const type = typeOf(schema);
  const env = type === 'mappings' ? undefined : `RANKD_${parents.join('_').toUpperCase()}`;
  const { description = '', default: preset } = schema;
  return [{ path: parents.join('.'), env, description, default: preset, type }];
}

function entrySettings({ properties = {}, required = [] }: JsonSchema): typeof keySettings {
  return Object.entries(properties).map(([path, { description = '', default: preset }]) => ({
    path,
    description,
    default: preset,
    isRequired: required.includes(path),
  }));
}

function typeOf({ type, items }: JsonSchema): Setting['type'] {
  if (type === 'array') return listTypeOf(items?.type);
  if (type === 'integer') return 'number';
  return type === 'boolean' ? 'boolean' : 'text';
}

function listTypeOf(type: string | undefined): Setting['type'] {
  if (type === 'object') return 'mappings';
  return type === 'string' ? 'texts' : 'numbers';
}

/** `a.b.c` → `a`, `a.b`. */
function parents(path: string): string[] {
  const segments = path.split('.');
  return segments.slice(1).map((_, index) => segments.slice(0, index + 1).join('.'));
}
