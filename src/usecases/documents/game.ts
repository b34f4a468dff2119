/** The values in a game's files; `files` are the absolute paths that were written. */
export function gameFilesDocument<Values extends object>(values: Values, files: readonly string[]) {
  return { ...values, files };
}

export function gameModelDocument(
  { name, place, typed }: { name: string; place: string; typed?: string | undefined },
  scripts: readonly string[],
) {
  return { name, place, typed: typed ?? null, scripts };
}

/** The module for a game's own scripts: its text, or the file that it was written to. */
export function scriptDocument<Values extends object>(values: Values, made: { script: string } | { file: string }) {
  return { ...values, ...made };
}
