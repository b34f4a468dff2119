/** What only `rankd serve` needs, in one piece: each file of the bundle that is loaded costs its start half a millisecond. */

export { createLog } from '../base/log.ts';
export { listenForCommands } from '../control/listen.ts';
export { daemonStatus } from '../usecases/documents/status.ts';
export { tuneYoungHeap } from '../young-heap.ts';
export { startDaemon } from './daemon.ts';
export { LiveConfig } from './live-config.ts';
