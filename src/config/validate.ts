import type { z } from 'zod';
import { type ConfigFile, isSection } from './config-file.ts';
import type { Layer } from './layer.ts';
import { describeValue, type Problem } from './problem.ts';
import { type Settings, settingsSchema } from './schema.ts';
import { unknownSetting } from './unknown-setting.ts';

/** The settings that follow from the layers (the first layer that has a setting decides it), or what is wrong with each. */
export function validate(
  layers: readonly Layer[],
  file: ConfigFile | undefined,
): { settings?: Settings; problems: Problem[] } {
  // Compiling the schema first (`jitless: false`) pays only for what is checked often. This is checked once.
  const checked = settingsSchema.safeParse(merged(layers, file?.content ?? {}), { reportInput: true, jitless: true });
  if (checked.success) return { settings: checked.data, problems: [] };
  return { problems: checked.error.issues.flatMap((issue) => problemsOf(issue, layers, file)) };
}

/** Everything that the file says, unknown settings included, overlaid with the values of the layers before it. */
function merged(layers: readonly Layer[], content: Record<string, unknown>): Record<string, unknown> {
  const tree = structuredClone(content);
  for (const { values } of layers.toReversed()) {
    for (const [path, value] of values) putIn(tree, path.split('.'), value);
  }
  return tree;
}

/** A section of the file that is not a mapping stays as it is, and the schema complains about it. */
function putIn(tree: Record<string, unknown>, [name, ...rest]: string[], value: unknown): void {
  if (name === undefined) return;
  if (rest.length === 0) {
    tree[name] = value;
    return;
  }
  tree[name] ??= {};
  const section = tree[name];
  if (isSection(section)) putIn(section, rest, value);
}

function problemsOf(issue: z.core.$ZodIssue, layers: readonly Layer[], file: ConfigFile | undefined): Problem[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((name) => {
      const path = [...issue.path, name];
      return { ...file?.locationOfKey(path), text: unknownSetting(path.join('.')) };
    });
  }
  const setting = issue.path.filter((segment) => typeof segment === 'string').join('.');
  const layer = layers.find(({ values }) => values.has(setting)) ?? file;
  const isQuoted =
    typeof issue.input === 'string' && /^-?\d+$/.test(issue.input) && /^a whole number/.test(issue.message);
  const expected = isQuoted && layer === file ? `${issue.message}, without quotes` : issue.message;
  return [{ ...layer?.locationOf(issue.path), text: `${describeValue(issue.input)}; expected ${expected}` }];
}
