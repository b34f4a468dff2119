import type { Layer, Origin } from './layer.ts';
import { settings } from './settings.ts';

/** Where each setting comes from: the first of the layers that has it, else its default. */
export function originsOf(layers: readonly Layer[]): Map<string, Origin> {
  return new Map(settings.map((setting) => [setting.path, originOf(layers, setting)]));
}

function originOf(layers: readonly Layer[], setting: { path: string; default: unknown }): Origin {
  const layer = layers.find(({ values }) => values.has(setting.path));
  if (layer === undefined) return { source: 'default', at: undefined, value: setting.default };
  const { at } = layer.placeOf(setting.path.split('.'));
  return { source: layer.source, at, value: layer.values.get(setting.path) };
}
