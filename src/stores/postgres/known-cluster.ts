import { existsSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { privateFile } from '../../base/data-dir.ts';
import { RankdError } from '../../base/errors.ts';
import { inWords, writeWhole } from '../../base/files.ts';
import { hostAndPort, placeOf, type ServerAddress } from '../../base/net.ts';

/** The identifier used for a cluster that does not report its own, for example because the user lacks permission. */
export const unreported = 'unreported';

/** Stores the `system_identifier` of the cluster at an address, so that later processes can check it. */
export interface ClusterMemory {
  find(): string | undefined;
  record(cluster: string): void;
}

export function clusterMemory(dataDir: string, address: ServerAddress): ClusterMemory {
  const name = 'rankd.clusters';
  const file = join(dataDir, name);
  const place = placeOf(address);
  const notes = () => readNotes(file);
  return {
    find: () => notes()[place],
    record(cluster) {
      const text = `${JSON.stringify({ ...notes(), [place]: cluster }, undefined, 2)}\n`;
      const to = privateFile(dataDir, name);
      writeWhole({ to, unfinished: `${to}.unfinished`, mayReplace: true }, (_, descriptor) => {
        writeSync(descriptor, text);
      });
    },
  };
}

/** Reads the recorded clusters, keyed by database address. */
function readNotes(file: string): Record<string, string> {
  try {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const notes: unknown = text === '' ? {} : JSON.parse(text);
    if (typeof notes === 'object' && notes !== null && !Array.isArray(notes)) return notes as Record<string, string>;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw inWords(error, file);
  }
  throw new RankdError(
    'config_invalid',
    `${file} is not in rankd's format: it should contain the cluster of each URL.`,
    {
      hint: 'move it away, then compare the cluster that `rankd store accept` shows with the one that you expect',
    },
  );
}

/**
 * Checks that all connections reach the same cluster: the recorded one or, if none is recorded, that of the first
 * connection. A promoted standby has the identifier of its former primary. Rejects any other cluster until the operator
 * accepts it, unless the known one does not report its identifier.
 */
export class KnownCluster {
  readonly #address: ServerAddress;
  readonly #memory: ClusterMemory | undefined;
  #known: string | undefined;

  constructor(address: ServerAddress, memory?: ClusterMemory) {
    this.#address = address;
    this.#memory = memory;
  }

  /** The cluster's identifier; `undefined` before the first connection. */
  get found(): string | undefined {
    return this.#known;
  }

  /** Checks the cluster of a new connection. Throws `store_unavailable` if it is not the known one. */
  check(found: string): void {
    this.#known ??= this.#memory?.find();
    if (this.#known === undefined || this.#known === unreported) this.#known = found;
    if (found === this.#known) return;
    if (this.#memory?.find() !== found) throw otherCluster(this.#address, { found, known: this.#known });
    this.#known = found; // the operator accepted it while this process was running
  }

  remember(): void {
    if (this.#known !== undefined && this.#memory?.find() !== this.#known) this.#memory?.record(this.#known);
  }
}

function otherCluster(address: ServerAddress, { found, known }: { found: string; known: string }): RankdError {
  const message = `The PostgreSQL server is not the same as before: ${clusterTitle(found)}, not ${clusterTitle(known)}.`;
  return new RankdError('store_unavailable', message, {
    hint: `after a restored dump, an upgrade or a move, run rankd store accept; otherwise check which server responds on ${hostAndPort(address)}`,
    retryAfterMs: 5_000,
  });
}

function clusterTitle(cluster: string): string {
  return cluster === unreported ? 'one that does not report its system_identifier' : `cluster ${cluster}`;
}
