import * as z from 'zod';
import { declaredKey } from './declared-key-schema.ts';
import { declaredWebhook } from './declared-webhook-schema.ts';
import { settingsSchema } from './schema.ts';

/** One setting, for the table in docs/settings.md, the environment and `config show`. */
export interface Setting {
  /** e.g. `server.port`. */
  path: string;
  /** e.g. `RANKD_SERVER_PORT`; `undefined` if no variable can hold it. */
  env: string | undefined;
  description: string;
  /** The default as the file would say it; `undefined` if the setting is off, or follows from others, unless it is given. */
  default: unknown;
  type: 'text' | 'number' | 'boolean' | 'numbers' | 'text or number' | 'text or numbers' | 'texts' | 'mappings';
}

/** Every setting, in the order of the schema. */
export const settings: readonly Setting[] = leaves(settingsSchema, []);

/** Every mapping that groups settings, e.g. `policy` and `policy.breaker`. */
export const sections: ReadonlySet<string> = new Set(settings.flatMap(({ path }) => parents(path)));

/** Every setting of an entry of `keys`. */
export const keySettings: readonly EntrySetting[] = ofEntry(declaredKey.shape);

/** Every setting of an entry of `webhooks.targets`. */
export const webhookSettings: readonly EntrySetting[] = ofEntry(declaredWebhook.shape);

/** What an entry of a list is told by. */
export type EntrySetting = Pick<Setting, 'path' | 'description' | 'default'> & { isRequired: boolean };

function ofEntry(shape: Record<string, z.core.$ZodType>): EntrySetting[] {
  return Object.entries(shape).map(([path, schema]) => {
    const { description, preset, isOptional } = read(schema);
    return { path, description, default: preset, isRequired: !isOptional };
  });
}

/** The schema of `rankd.yaml` as JSON Schema 2020-12, for editors. */
export function jsonSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(settingsSchema, { io: 'input' });
}

function leaves(schema: z.core.$ZodType, parents: string[]): Setting[] {
  const { kind, description, preset } = read(schema);
  if (kind.type === 'object') {
    return Object.entries(kind.shape).flatMap(([name, child]) => leaves(child, [...parents, name]));
  }
  const type = typeOf(kind);
  const env = type === 'mappings' ? undefined : `RANKD_${parents.join('_').toUpperCase()}`;
  return [{ path: parents.join('.'), env, description, default: preset, type }];
}

interface SchemaRead {
  /** The schema inside all wrappers. */
  kind: z.core.$ZodTypes['_zod']['def'];
  description: string;
  preset: unknown;
  isOptional: boolean;
}

/** Looks through the wrappers of a schema. A conversion to JSON Schema would say the same, but every start would wait for it. */
function read(schema: z.core.$ZodType): SchemaRead {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const own = z.globalRegistry.get(schema)?.description;
  const inner = def.type === 'pipe' ? def.in : 'innerType' in def ? def.innerType : undefined;
  const { kind, description, preset, isOptional }: SchemaRead =
    inner === undefined ? { kind: def, description: '', preset: undefined, isOptional: false } : read(inner);
  return {
    kind,
    description: own ?? description,
    preset: 'defaultValue' in def ? def.defaultValue : preset,
    isOptional: isOptional || ['optional', 'default', 'prefault'].includes(def.type),
  };
}

function typeOf(kind: SchemaRead['kind']): Setting['type'] {
  if (kind.type === 'array') return listTypeOf(read(kind.element).kind.type);
  if (kind.type === 'union') return kind.options.some(isList) ? 'text or numbers' : 'text or number';
  return kind.type === 'number' || kind.type === 'boolean' ? kind.type : 'text';
}

function isList(option: z.core.$ZodType): boolean {
  return read(option).kind.type === 'array';
}

function listTypeOf(element: SchemaRead['kind']['type']): Setting['type'] {
  if (element === 'object') return 'mappings';
  return element === 'number' || element === 'union' ? 'numbers' : 'texts'; // a union takes names beside numbers
}

/** `a.b.c` → `a`, `a.b`. */
function parents(path: string): string[] {
  const segments = path.split('.');
  return segments.slice(1).map((_, index) => segments.slice(0, index + 1).join('.'));
}
