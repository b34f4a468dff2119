import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const packageDir = fileURLToPath(new URL('../..', import.meta.url));

/** What every command that runs in this process has of the world: all that it prints is kept. */
export class WatchedIo {
  /** Results. */
  out = '';
  /** Talk and log. */
  talk = '';
  readonly nodeVersion = process.versions.node;
  readonly pid = process.pid;
  readonly packageDir = packageDir;
  readonly command: [string, string] = [process.execPath, join(packageDir, 'bin', 'rankd.js')];
  readonly operator = 'cli:tester@test';
  readonly readerGone = new Promise<void>(() => undefined);

  stdout = (text: string) => {
    this.out += text;
  };

  stdoutBytes = async (chunk: Uint8Array) => this.stdout(Buffer.from(chunk).toString());

  stderr = (text: string) => {
    this.talk += text;
  };

  log = this.stderr;

  drained = async () => undefined;

  onReload = () => undefined;
}
