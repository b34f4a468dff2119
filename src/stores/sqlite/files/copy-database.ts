import { Connection } from '../engine/connection.ts';

/**
 * Copies one moment of a database, its write-ahead log included, into a file that is empty. Others can go on
 * reading and writing meanwhile. The copy is one file; it is not forced to the disk.
 */
export function copyDatabase(from: string, to: string, { isReadonly = false } = {}): void {
  const source = new Connection(from, { isReadonly });
  try {
    copyInto(source, to);
  } finally {
    source.close();
  }
}

/** The same, of a database that is open. */
export function copyInto(source: Connection, to: string): void {
  source.run('VACUUM INTO @to', { to });
}
