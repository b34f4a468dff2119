import type { Place, Problem } from './problem.ts';

/** A place that settings come from, as read, before their values are checked. */
export interface Layer {
  source: 'flag' | 'environment' | 'file';
  /** What it says, by the path of the setting, e.g. `server.port`. */
  values: ReadonlyMap<string, unknown>;
  /** What relative paths in it start from. */
  folder: string;
  /** What is wrong with it apart from values. */
  problems: readonly Problem[];
  /** Where it says something; the path may lead into a list. */
  placeOf(path: readonly PropertyKey[]): Place;
}
