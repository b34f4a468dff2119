/** What kind of error Node or SQLite threw, e.g. `ENOENT` or `SQLITE_BUSY`; empty where it says none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
