import { newId } from '../core/api-key.ts';

/** Random for each process, so that two runs don't use the same ids. */
const ofThisProcess = newId('req').slice(0, -5);
let count = 36 ** 4; // five digits from the first one on

/** The next request's id, e.g. `req_8TqLx0v100k3`. It ends in a counter: random characters would cost more than the routing. */
export function nextRequestId(): string {
  count += 1;
  return ofThisProcess + count.toString(36);
}
