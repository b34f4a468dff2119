import type { Location, Problem } from './problem.ts';

/** A source of settings, as it was read: their values are not checked yet. */
export interface Layer {
  source: 'flag' | 'environment' | 'file';
  /** Its values, by the path of the setting, e.g. `server.port`. */
  values: ReadonlyMap<string, unknown>;
  /** The folder that relative paths in it start from. */
  folder: string;
  /** What is wrong with it apart from values. */
  problems: readonly Problem[];
  /** Where it has a value; the path may lead into a list. */
  locationOf(path: readonly PropertyKey[]): Location;
}
