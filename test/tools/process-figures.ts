import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessFigures {
  residentMiB: number;
  /** The virtual size of private data, including JavaScript's heap and native heaps. */
  dataMiB: number;
  threads: number;
  /** Open files and sockets. */
  handles: number;
}

export function figuresOf(pid: number): ProcessFigures {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  return {
    residentMiB: Math.round(field('VmRSS') / 1024),
    dataMiB: Math.round(field('VmData') / 1024),
    threads: field('Threads'),
    handles: readdirSync(`/proc/${pid}/fd`).length,
  };
}

/** Returns the median, which a single spike does not affect. */
export function median(figures: number[]): number {
  const ordered = [...figures].sort((a, b) => a - b);
  return ordered[Math.floor(ordered.length / 2)] ?? 0;
}
