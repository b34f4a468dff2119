import type { Layer } from './layer.ts';
import { settings } from './settings.ts';

/** Where the value of a setting comes from. */
export interface Origin {
  source: Layer['source'] | 'credential' | 'default';
  /** The flag, variable, `file:line:col` or credential file; absent for a default. */
  at: string | undefined;
  /** The value as the file would say it; `[redacted]` for a secret, `undefined` if nothing is set. */
  value: unknown;
  /** The sources that it hides, the nearest first, without the default; absent if it hides none. */
  shadows?: Origin[];
}

/** Where each setting comes from: the first of the layers that has it, or else its default. */
export function originsOf(layers: readonly Layer[]): Map<string, Origin> {
  return new Map(settings.map((setting) => [setting.path, originOf(layers, setting)]));
}

function originOf(layers: readonly Layer[], setting: { path: string; default: unknown }): Origin {
  const [first, ...shadows] = layers
    .filter(({ values }) => values.has(setting.path))
    .map((layer) => ({
      source: layer.source,
      at: layer.locationOf(setting.path.split('.')).at,
      value: layer.values.get(setting.path),
    }));
  if (first === undefined) return { source: 'default', at: undefined, value: setting.default };
  if (shadows.length === 0) return first;
  return { ...first, shadows: shadows.map((one) => ({ ...one, value: presentable(one.value) })) };
}

/** A hidden value is not checked, so a long text may be a secret in the wrong place. */
function presentable(value: unknown): unknown {
  return typeof value === 'string' && value.length >= 32 ? '[redacted]' : value;
}
