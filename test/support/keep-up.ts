import net from 'node:net';

/**
 * Maintains `count` connections to an address until disposal, and replaces those that close. `begin` starts the work on
 * a connection, and returns a function that ends it.
 */
export function keepUp(url: string, count: number, begin: (socket: net.Socket) => () => void) {
  const sockets = new Set<net.Socket>();
  let isOver = false;
  const open = () => {
    if (isOver) return;
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
    sockets.add(socket);
    socket.on('error', () => undefined); // the test expects the server to cut connections
    let end: () => void = () => undefined;
    socket.once('connect', () => {
      end = begin(socket);
    });
    socket.once('close', () => {
      end();
      sockets.delete(socket);
      setTimeout(open, 100);
    });
  };
  for (let index = 0; index < count; index += 1) open();
  return {
    async [Symbol.asyncDispose]() {
      isOver = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

export function repeat(everyMs: number, work: () => unknown): () => void {
  work();
  const timer = setInterval(work, everyMs);
  return () => clearInterval(timer);
}
