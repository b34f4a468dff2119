export type Closer = AsyncDisposable | (() => unknown);

/**
 * Runs `open`, which adds every resource that it opens to the list. If `open` throws, closes them in reverse order.
 * AsyncDisposableStack does the same, but Node.js 22 does not have it.
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

/**
 * Closes everything in the list, last first, and empties the list. If any of them fail to close, throws the first error
 * after trying all of them.
 */
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
