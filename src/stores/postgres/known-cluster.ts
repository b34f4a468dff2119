import { existsSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { privateFile } from '../../base/data-dir.ts';
import { RankdError } from '../../base/errors.ts';
import { inWords, writeWhole } from '../../base/files.ts';
import { hostAndPort, placeOf, type ServerAddress } from '../../base/net.ts';

/** Replaces the identifier of a cluster whose server does not let the user read it. */
export const unreported = 'unreported';

/** The cluster behind an address, by its `system_identifier`, as recorded by earlier processes. */
export interface ClusterMemory {
  find(): string | undefined;
  keep(cluster: string): void;
}

/** The notes of a data directory, with an entry for each place that rankd has worked with there. */
export function clusterMemory(dataDir: string, address: ServerAddress): ClusterMemory {
  const name = 'rankd.clusters';
  const file = join(dataDir, name);
  const place = placeOf(address);
  const notes = () => readNotes(file);
  return {
    find: () => notes()[place],
    keep(cluster) {
      const text = `${JSON.stringify({ ...notes(), [place]: cluster }, undefined, 2)}\n`;
      const to = privateFile(dataDir, name);
      writeWhole({ to, unfinished: `${to}.unfinished`, mayReplace: true }, (_, descriptor) => {
        writeSync(descriptor, text);
      });
    },
  };
}

/** Clusters by place. */
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
 * The cluster that an address has to lead to: the one of the first connection and, with a memory, the one of earlier processes. A standby that
 * takes over has the identifier of its primary; every other cluster is refused until the operator accepts it.
 */
export class KnownCluster {
  readonly #address: ServerAddress;
  readonly #memory: ClusterMemory | undefined;
  #known: string | undefined;

  constructor(address: ServerAddress, memory?: ClusterMemory) {
    this.#address = address;
    this.#memory = memory;
  }

  /** The cluster that connections led to; `undefined` before the first. */
  get found(): string | undefined {
    return this.#known;
  }

  /** Called with each new connection. Throws `store_unavailable` if it leads to another cluster. */
  check(found: string): void {
    this.#known ??= this.#memory?.find();
    if (this.#known === undefined || this.#known === unreported) this.#known = found;
    if (found === this.#known) return;
    if (this.#memory?.find() !== found) throw otherCluster(this.#address, { found, known: this.#known });
    this.#known = found; // the operator has accepted it in the meantime
  }

  /** Notes the cluster for later processes. */
  remember(): void {
    if (this.#known !== undefined && this.#memory?.find() !== this.#known) this.#memory?.keep(this.#known);
  }
}

function otherCluster(address: ServerAddress, { found, known }: { found: string; known: string }): RankdError {
  const message = `The PostgreSQL server is not the same as before: ${clusterTitle(found)}, not ${clusterTitle(known)}.`;
  return new RankdError('store_unavailable', message, {
    hint: `after a restored dump, an upgrade or a move, run rankd store accept; otherwise check which server responds on ${hostAndPort(address)}`,
    retryAfterMs: 5_000,
  });
}

/** The name of a cluster in messages. */
function clusterTitle(cluster: string): string {
  return cluster === unreported ? 'one that does not report its system_identifier' : `cluster ${cluster}`;
}
