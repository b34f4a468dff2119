import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isRankdError, type RankdError } from '../../src/base/errors.ts';
import { type ConfigSources, type LoadedConfig, loadConfig } from '../../src/config/load.ts';
import { thisUser } from '../support/command-io.ts';
import { TempDir } from '../support/temp-dir.ts';

/** A temporary folder that serves as the current folder. Its home folder exists only after a test writes to it. */
export class Sandbox {
  readonly #dir = new TempDir();
  readonly folder = this.#dir.path;

  path(name: string): string {
    return join(this.folder, name);
  }

  write(name: string, text: string, mode = 0o600): string {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), text, { mode });
    return this.path(name);
  }

  load({ flags = {}, env = {}, configFile, user = thisUser() }: Partial<ConfigSources> = {}): LoadedConfig {
    return loadConfig({ flags, env: { HOME: this.path('home'), ...env }, cwd: this.folder, configFile, user });
  }

  failure(sources: Partial<ConfigSources> = {}): RankdError {
    try {
      this.load(sources);
    } catch (error) {
      if (isRankdError(error)) return error;
      throw error;
    }
    throw new Error('loading succeeded');
  }

  /** Loads a `rankd.yaml` with this text, and returns the lines of the error message. */
  complaints(text: string, sources: Partial<ConfigSources> = {}): string[] {
    this.write('rankd.yaml', text);
    const { code, message } = this.failure(sources);
    if (code !== 'config_invalid') throw new Error(`unexpected ${code}: ${message}`);
    return message.split('\n');
  }

  [Symbol.dispose](): void {
    this.#dir[Symbol.dispose]();
  }
}
