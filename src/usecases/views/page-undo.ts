import { asRankdError, RankdError } from '../../base/errors.ts';
import type { ChangeSelection } from '../../ports/index.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { afterLateLooks, findUndoTargets, runUndo, type UndoRun, type UndoTargets } from '../undo/undo-changes.ts';

/** More members than an operator would review before agreeing. */
export const maxUndone = 500;
/** At most this many runs are remembered. */
const maxRuns = 20;

/** The preview of an undo. */
export interface UndoPreview {
  targets: UndoTargets;
  run: UndoRun;
}

/** A confirmed undo. */
export interface PageUndo {
  targets: UndoTargets;
  done: number;
  /** Set once it has ended. */
  run: UndoRun | undefined;
}

/** Previews an undo, like `rankd history undo --dry-run`. Throws like `findUndoTargets`. */
export async function previewUndo(
  app: DaemonContext,
  selection: ChangeSelection,
  { by, stop }: { by: string; stop: AbortSignal },
): Promise<UndoPreview> {
  const targets = await findUndoTargets(app, selection, { maxChanges: maxUndone });
  const command = { selection, undoId: targets.undoId, by, dryRun: true };
  const { members, changes } = targets;
  return { targets, run: await runUndo(app, { members, changes, command }, { stop, report: () => undefined }) };
}

/**
 * The undos of the page, one at a time. Each undoes exactly the changes that were shown, by their ids. Closing the page
 * does not end it; the daemon's end does, after the members in progress.
 */
export class PageUndos implements AsyncDisposable {
  readonly #runs = new Map<string, PageUndo>();
  readonly #stopping = new AbortController();
  readonly #report: () => void;
  #running: Promise<void> | undefined;

  /** `report` is called at each step of a run. */
  constructor(report: () => void) {
    this.#report = report;
  }

  /** Throws `conflict` while another one runs, and like `findUndoTargets`. */
  async start(app: DaemonContext, { ids, by }: { ids: string[]; by: string }): Promise<PageUndo> {
    if (this.#running !== undefined) throw anotherRuns();
    const begun = Promise.withResolvers<void>();
    this.#running = begun.promise;
    try {
      const selection = { ids };
      const targets = await findUndoTargets(app, selection, { maxChanges: maxUndone });
      const undo: PageUndo = { targets, done: 0, run: undefined };
      this.#remember(undo);
      this.#running = this.#carryOut(app, undo, { selection, by }).finally(() => {
        this.#running = undefined;
        this.#report();
      });
      return undo;
    } catch (error) {
      this.#running = undefined;
      throw error;
    } finally {
      begun.resolve();
    }
  }

  /** Throws `not_found`. */
  find(id: string): PageUndo {
    const undo = this.#runs.get(id);
    if (undo !== undefined) return undo;
    throw new RankdError('not_found', 'The page has no such undo.', { hint: `rankd history list --by web` });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    while (this.#running !== undefined) await this.#running;
  }

  async #carryOut(
    app: DaemonContext,
    undo: PageUndo,
    { selection, by }: { selection: ChangeSelection; by: string },
  ): Promise<void> {
    const { undoId, members, answered, changes } = undo.targets;
    const report = (done: number) => {
      undo.done = done;
      this.#report();
    };
    try {
      const command = { selection, undoId, by, dryRun: false };
      const control = { stop: this.#stopping.signal, report };
      const run = members.length === 0 ? nothing : await runUndo(app, { members, answered, changes, command }, control);
      undo.run = await afterLateLooks(app, run);
    } catch (cause) {
      app.log.error({ err: cause, undoId }, 'an undo of the page could not be carried out');
      undo.run = { ...nothing, left: members, error: asRankdError(cause) };
    }
  }

  #remember(undo: PageUndo): void {
    this.#runs.set(undo.targets.undoId, undo);
    const [oldest] = this.#runs.keys();
    if (this.#runs.size > maxRuns && oldest !== undefined) this.#runs.delete(oldest);
  }
}

const nothing: UndoRun = { results: [], left: [], error: undefined };

function anotherRuns(): RankdError {
  return new RankdError('conflict', 'Another undo of the page runs.', { hint: 'wait until it is done' });
}
