import * as z from 'zod';
import { declaredKey } from './declared-key.ts';
import { declaredWebhook } from './declared-webhook.ts';
import { settingsSchema } from './schema.ts';

export interface Setting {
  path: string;
  /** e.g. `RANKD_SERVER_PORT`; `undefined` if no variable can set it. */
  env: string | undefined;
  description: string;
  /**
   * In the form used in the file; `undefined` if the setting is off by default or its default depends on other
   * settings.
   */
  default: unknown;
  type:
    | 'text'
    | 'text or mappings'
    | 'number'
    | 'boolean'
    | 'numbers'
    | 'text or number'
    | 'text or numbers'
    | 'texts'
    | 'mappings';
}

export const settings: readonly Setting[] = leaves(settingsSchema, []);

/** Includes nested sections, such as `policy.breaker`. */
export const sections: ReadonlySet<string> = new Set(settings.flatMap(({ path }) => parents(path)));

export type EntrySetting = Pick<Setting, 'path' | 'description' | 'default'> & { isRequired: boolean };

export const keySettings: readonly EntrySetting[] = ofEntry(declaredKey.shape);

export const webhookSettings: readonly EntrySetting[] = ofEntry(declaredWebhook.shape);

/** Returns the JSON Schema (2020-12) with which editors check `rankd.yaml`. */
export function jsonSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(settingsSchema, { io: 'input' });
}

function leaves(schema: z.core.$ZodType, parents: string[]): Setting[] {
  const { kind, description, preset } = unwrap(schema);
  if (kind.type === 'object') {
    return Object.entries(kind.shape).flatMap(([name, child]) => leaves(child, [...parents, name]));
  }
  const type = typeOf(kind);
  const hasVariable = type !== 'mappings' || parents.join('.') === 'keys';
  const env = hasVariable ? `RANKD_${parents.join('_').toUpperCase()}` : undefined;
  return [{ path: parents.join('.'), env, description, default: preset, type }];
}

function ofEntry(shape: Record<string, z.core.$ZodType>): EntrySetting[] {
  return Object.entries(shape).map(([path, schema]) => {
    const { description, preset, isOptional } = unwrap(schema);
    return { path, description, default: preset, isRequired: !isOptional };
  });
}

interface Unwrapped {
  kind: z.core.$ZodTypes['_zod']['def'];
  description: string;
  preset: unknown;
  isOptional: boolean;
}

/** Converting the schema to JSON Schema would give the same data, but would delay every start. */
function unwrap(schema: z.core.$ZodType): Unwrapped {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const own = z.globalRegistry.get(schema)?.description;
  const inner = def.type === 'pipe' ? def.in : 'innerType' in def ? def.innerType : undefined;
  const { kind, description, preset, isOptional }: Unwrapped =
    inner === undefined ? { kind: def, description: '', preset: undefined, isOptional: false } : unwrap(inner);
  return {
    kind,
    description: own ?? description,
    preset: 'defaultValue' in def ? def.defaultValue : preset,
    isOptional: isOptional || ['optional', 'default', 'prefault'].includes(def.type),
  };
}

function typeOf(kind: Unwrapped['kind']): Setting['type'] {
  if (kind.type === 'array') return listTypeOf(unwrap(kind.element).kind.type);
  if (kind.type === 'union') {
    const list = kind.options.map((option) => unwrap(option).kind).find((option) => option.type === 'array');
    if (list === undefined) return 'text or number';
    return typeOf(list) === 'mappings' ? 'text or mappings' : 'text or numbers';
  }
  return kind.type === 'number' || kind.type === 'boolean' ? kind.type : 'text';
}

function listTypeOf(element: Unwrapped['kind']['type']): Setting['type'] {
  if (element === 'object') return 'mappings';
  return element === 'number' || element === 'union' ? 'numbers' : 'texts'; // roles are a union of names and numbers
}

/** `a.b.c` → `a`, `a.b`. */
function parents(path: string): string[] {
  const segments = path.split('.');
  return segments.slice(1).map((_, index) => segments.slice(0, index + 1).join('.'));
}

export interface Chosen {
  value: string | number | number[];
  note?: string;
}

/**
 * Renders a `rankd.yaml` that sets the chosen settings, keyed by path. All others are commented out, with their
 * defaults.
 */
export function renderYaml(chosen: ReadonlyMap<string, Chosen>): string {
  let section: string[] = [];
  const lines = settings.flatMap(({ path, description, default: preset }) => {
    const parents = path.split('.').slice(0, -1);
    const opened = parents.length === 0 ? [''] : headings(parents, section);
    section = parents;
    return [...opened, ...entry(path, description, chosen.get(path) ?? { value: preset, isCommentedOut: true })];
  });
  return `${heading}\n${lines.join('\n')}\n`;
}

const heading = `# rankd's configuration. Each commented-out setting has its default value; remove the # to change it.
# Check it with: rankd config check
`;

/** Opens the sections that begin with this setting. `before` is the previous setting's section. */
function headings(parents: string[], before: string[]): string[] {
  const isSame = (depth: number) => parents.slice(0, depth + 1).join('.') === before.slice(0, depth + 1).join('.');
  return parents.flatMap((name, depth) => {
    if (isSame(depth)) return [];
    return [...(depth === 0 && before.length > 0 ? [''] : []), `${indent(depth)}${name}:`];
  });
}

function entry(
  path: string,
  description: string,
  { value, note, isCommentedOut }: { value: unknown; note?: string; isCommentedOut?: boolean },
): string[] {
  const segments = path.split('.');
  const lead = indent(segments.length - 1);
  const text = value === undefined ? '' : ` ${scalar(value)}`;
  return [
    `${lead}# ${description}`,
    `${lead}${isCommentedOut ? '#' : ''}${segments.at(-1)}:${text}${note === undefined ? '' : `  # ${oneLine(note)}`}`,
  ];
}

function scalar(value: unknown): string {
  if (Array.isArray(value)) return `[${value.join(', ')}]`;
  const isPlain = typeof value !== 'string' || /^[\w./][\w./:-]*$/.test(value);
  return isPlain ? String(value) : JSON.stringify(value);
}

/** Notes contain group and role names from Roblox, in which a line break would end the comment. */
function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, ' ');
}

function indent(depth: number): string {
  return '  '.repeat(depth);
}
