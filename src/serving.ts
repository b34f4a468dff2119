/** What only `rankd serve` needs, in one piece: each file of the bundle that is loaded costs its start half a millisecond. */
export { daemonStatus } from './control/daemon-status.ts';
export { listenForCommands } from './control/listen.ts';
export { startDaemon } from './daemon.ts';
export { LiveConfig } from './live-config.ts';
export { createLog } from './log.ts';
export { tuneYoungHeap } from './young-heap.ts';
