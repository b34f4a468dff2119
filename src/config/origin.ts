import type { Layer } from './layer.ts';
import { settings } from './settings.ts';

/** Where the value of a setting comes from. */
export interface Origin {
  source: Layer['source'] | 'credential' | 'default';
  /** The flag, variable, `file:line:col` or credential file; absent for a default. */
  at: string | undefined;
  /** As the file would say it; `[redacted]` for a secret, `undefined` where nothing is set. */
  value: unknown;
  /** What would decide it otherwise, the nearest first, its default left out; absent where nothing would. */
  shadows?: Origin[];
}

/** Where each setting comes from: the first of the layers that has it, else its default. */
export function originsOf(layers: readonly Layer[]): Map<string, Origin> {
  return new Map(settings.map((setting) => [setting.path, originOf(layers, setting)]));
}

function originOf(layers: readonly Layer[], setting: { path: string; default: unknown }): Origin {
  const [first, ...shadows] = layers
    .filter(({ values }) => values.has(setting.path))
    .map((layer) => ({
      source: layer.source,
      at: layer.placeOf(setting.path.split('.')).at,
      value: layer.values.get(setting.path),
    }));
  if (first === undefined) return { source: 'default', at: undefined, value: setting.default };
  if (shadows.length === 0) return first;
  return { ...first, shadows: shadows.map((one) => ({ ...one, value: presentable(one.value) })) };
}

/** Nobody judges a value that does not count: a long text may be a secret in the wrong place. */
function presentable(value: unknown): unknown {
  return typeof value === 'string' && value.length >= 32 ? '[redacted]' : value;
}
