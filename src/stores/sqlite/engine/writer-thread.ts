import { parentPort } from 'node:worker_threads';
import { type Answer, failureOf, Writer, type WriterMessage } from './writer.ts';

/** Keyed by the id in the writer's messages. */
const writers = new Map<number, Writer>();

parentPort?.on('message', (message: WriterMessage) => {
  parentPort?.postMessage(handle(message));
});

function handle(message: WriterMessage): Answer[] {
  const { id } = message;
  if ('close' in message) {
    writers.get(id)?.close();
    writers.delete(id);
    return [];
  }
  try {
    const writer = writers.get(id) ?? new Writer(message.options);
    writers.set(id, writer);
    return writer.run(message.steps);
  } catch (error) {
    return message.steps.map(() => ({ failure: failureOf(error) }));
  }
}
