/** A resource, or a function that closes one. */
export type Closer = AsyncDisposable | (() => unknown);

/**
 * Opens resources that belong together. `open` adds each one to the list; if it then throws, this closes them in
 * reverse order. AsyncDisposableStack does the same, but is missing from Node.js 22.
 */
export async function openAll<T>(open: (closers: Closer[]) => Promise<T>): Promise<T> {
  const closers: Closer[] = [];
  try {
    return await open(closers);
  } catch (error) {
    await closeAll(closers).catch(() => undefined); // the first error is the cause
    throw error;
  }
}

/** Empties the list and closes everything in it, last first. After trying to close all, throws the first error. */
export async function closeAll(closers: Closer[]): Promise<void> {
  const errors: unknown[] = [];
  for (const closer of closers.splice(0).reverse()) {
    try {
      await (typeof closer === 'function' ? closer() : closer[Symbol.asyncDispose]());
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
