import { asRankdError, RankdError } from '../base/errors.ts';
import { appendTo } from '../base/files.ts';
import type { DaemonContext } from '../usecases/daemon-context.ts';
import { newestEvent, noteHeads } from '../usecases/history/audit-heads.ts';

/** Records the heads of the audit while a daemon runs, including those of commands next to it. */
export class AuditHeadWriter {
  #lastId: number | undefined;
  #isFailing = false;

  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** Records new heads in the configured file. The first time, only the newest one. Throws like `noteHeads`. */
  async note(app: Pick<DaemonContext, 'store' | 'clock' | 'headFile'>): Promise<void> {
    if (app.headFile === undefined) return;
    if (this.#lastId === undefined) await requireWritable(app.headFile);
    this.#lastId ??= Math.max(0, (await newestEvent(app)) - 1);
    this.#lastId = await noteHeads(app, { file: app.headFile, afterId: this.#lastId });
  }

  /** The same, but logs an error once and retries the next time. */
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

/** A file that can't be written ends the start, with the setting that names it. */
async function requireWritable(headFile: string): Promise<void> {
  await appendTo(headFile, '').catch((error: unknown) => {
    const { code, message, hint, cause } = asRankdError(error);
    const isWrongName = code === 'usage' || code === 'not_found';
    throw new RankdError(isWrongName ? 'config_invalid' : code, `audit.head_file: ${message}`, { hint, cause });
  });
}
