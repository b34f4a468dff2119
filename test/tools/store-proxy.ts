import { connect, createServer, type Socket } from 'node:net';

/** A proxy between a node and PostgreSQL. It forwards, delays or holds bytes, or breaks all connections. */
export interface StoreProxy extends AsyncDisposable {
  port: number;
  /**
   * `hold`: forwards nothing, but leaves the connections open. A number delays each chunk by that many milliseconds.
   */
  mode: 'pass' | 'hold' | number;
  cut(): void;
  /** The port to which new connections are forwarded. */
  serverPort: number;
  /** The number of connections made through the proxy. */
  readonly made: number;
  /** The number of round trips. All requests on a connection before its next response count as one trip. */
  readonly trips: number;
}

export async function startStoreProxy(firstPort: number): Promise<StoreProxy> {
  let serverPort = firstPort;
  const pairs = new Set<Socket[]>();
  const held: Array<() => void> = [];
  let mode: StoreProxy['mode'] = 'pass';
  let made = 0;
  let trips = 0;
  const noDelay = true; // Nagle's algorithm would add to the delay in `mode`
  const server = createServer({ noDelay }, (near) => {
    made += 1;
    const far = connect({ port: serverPort, host: '127.0.0.1', noDelay });
    const pair = [near, far];
    let isAsked = false;
    pairs.add(pair);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      let last = Promise.resolve();
      from.on('data', (bytes) => {
        if (from === near && !isAsked) trips += 1;
        isAsked = from === near;
        const released = turn();
        last = last.then(() => released).then(() => void to.write(bytes)); // in order
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        pairs.delete(pair);
        to.destroy();
      });
    }
  });
  /** Resolves when the next chunk can be forwarded. */
  const turn = () =>
    new Promise<void>((resolve) => {
      if (mode === 'hold') held.push(resolve);
      else if (mode === 'pass') resolve();
      else setTimeout(resolve, mode);
    });
  const cut = () => {
    for (const socket of [...pairs].flat()) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as { port: number }).port,
    get serverPort() {
      return serverPort;
    },
    set serverPort(next) {
      serverPort = next;
    },
    get made() {
      return made;
    },
    get trips() {
      return trips;
    },
    get mode() {
      return mode;
    },
    set mode(next) {
      mode = next;
      if (mode !== 'hold') for (const release of held.splice(0)) release();
    },
    cut,
    async [Symbol.asyncDispose]() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
