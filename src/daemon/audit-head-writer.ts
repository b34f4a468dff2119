import { asRankdError, RankdError } from '../base/errors.ts';
import { appendTo } from '../base/files.ts';
import type { DaemonContext } from '../usecases/daemon-context.ts';
import { newestEvent, noteHeads } from '../usecases/history/audit-heads.ts';

/** Records audit heads while a daemon is running, including those of events that commands recorded. */
export class AuditHeadWriter {
  #lastId: number | undefined;
  #isFailing = false;

  get isFailing(): boolean {
    return this.#isFailing;
  }

  /**
   * Appends new heads to the configured file; the first call appends only the newest. Throws the same errors as
   * `noteHeads` and, if the first call can't write the file, an error that names the setting.
   */
  async note(app: Pick<DaemonContext, 'store' | 'clock' | 'headFile'>): Promise<void> {
    if (app.headFile === undefined) return;
    if (this.#lastId === undefined) await requireWritable(app.headFile);
    this.#lastId ??= Math.max(0, (await newestEvent(app)) - 1);
    this.#lastId = await noteHeads(app, { file: app.headFile, afterId: this.#lastId });
  }

  /** Logs only the first of several consecutive errors; the next call retries. */
  async noteOrLog(app: DaemonContext): Promise<void> {
    try {
      await this.note(app);
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing)
        app.log.error({ err: error, problem: 'audit heads' }, 'the audit heads could not be recorded; trying again');
      this.#isFailing = true;
    }
  }
}

/**
 * Throws an error that names the setting if rankd can't write the file. At startup, the error stops the daemon; after a
 * reload, the daemon only logs the error.
 */
async function requireWritable(headFile: string): Promise<void> {
  await appendTo(headFile, '').catch((error: unknown) => {
    const { code, message, hint, cause } = asRankdError(error);
    const isWrongName = code === 'usage' || code === 'not_found';
    throw new RankdError(isWrongName ? 'config_invalid' : code, `audit.head_file: ${message}`, { hint, cause });
  });
}
