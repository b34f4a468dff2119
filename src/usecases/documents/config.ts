import type { Origin } from '../../config/layers.ts';

/** A configuration without a problem; `file` is null if there is none. */
export function checkedConfigDocument(file: string | undefined, warnings: string[]) {
  return { file: file ?? null, warnings };
}

/** Every setting with its value, its origin, and the values that it overrides. */
export function settingsDocument(file: string | undefined, origins: ReadonlyMap<string, Origin>) {
  const settings = [...origins].map(([name, { shadows = [], ...origin }]) => ({
    name,
    ...originDocument(origin),
    shadows: shadows.map(originDocument),
  }));
  return { file: file ?? null, settings };
}

/** The file that is read, and the places where rankd looks for one. */
export function configFileDocument(file: string | undefined, searched: string[]) {
  return { file: file ?? null, searched };
}

function originDocument({ value, source, at }: Origin) {
  return { value: value ?? null, source, at: at ?? null };
}
