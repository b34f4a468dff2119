import { readFileSync } from 'node:fs';

/**
 * Counts the commits in a write-ahead log: only the last frame of a commit contains the database size
 * (https://sqlite.org/fileformat2.html#walformat).
 */
export function commitsIn(file: string): number {
  const log = readFileSync(`${file}-wal`);
  const frameLength = 24 + log.readUInt32BE(8);
  let commits = 0;
  for (let at = 32; at + frameLength <= log.length; at += frameLength) commits += log.readUInt32BE(at + 4) > 0 ? 1 : 0;
  return commits;
}
