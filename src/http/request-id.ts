import { newId } from '../core/api-key.ts';

/** Random for each process, so that ids of two runs don't meet. */
const ofThisProcess = newId('req').slice(0, -5);
let count = 36 ** 4; // five digits from the first one on

/** The next request's id, e.g. `req_8TqLx0v100k3`: counted, because random characters for each request cost more than its routing. */
export function nextRequestId(): string {
  count += 1;
  return ofThisProcess + count.toString(36);
}
