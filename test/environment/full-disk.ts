import { execFileSync } from 'node:child_process';
import type { DaemonProcess } from '../support/daemon-process.ts';

/**
 * Lets every write of a running daemon fail as a disk does: no file of its may grow (RLIMIT_FSIZE, prlimit(1)). Needs no
 * privilege, and can be taken back while it runs. Pipes are not concerned, so it goes on logging.
 */
export function fillDisk({ process }: DaemonProcess): void {
  execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=0:']);
}

export function freeDisk({ process }: DaemonProcess): void {
  execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited:']);
}
