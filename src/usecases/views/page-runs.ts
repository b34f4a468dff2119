import { asRankdError, RankdError } from '../../base/errors.ts';
import type { ChangeSelection } from '../../ports/index.ts';
import {
  type ListCommand,
  type ListedMember,
  listAfterLateReads,
  planList,
  recordList,
  runList,
} from '../change/change-list.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { listDocument } from '../history/change-document.ts';
import { afterLateReads, findUndoTargets, runUndo, type UndoRun, type UndoTargets } from '../undo/undo-changes.ts';
import { undoDocument } from '../undo/undo-document.ts';

/** The maximum number of changes in an undo, and of members in a list: no operator would review more. */
export const maxMembers = 500;
const maxRuns = 20;

export interface UndoPreview {
  targets: UndoTargets;
  run: UndoRun;
}

type RunResult = { undo: ReturnType<typeof undoDocument> } | { list: ReturnType<typeof listDocument> };

/** An undo or a list that the operator has confirmed. */
interface PageRun {
  id: string;
  members: number;
  done: number;
  /** Set once the run has ended. */
  result: RunResult | undefined;
}

interface PlannedRun extends Pick<PageRun, 'id' | 'members'> {
  work: (control: { stop: AbortSignal; report: (done: number) => void }) => Promise<RunResult>;
  failed: (error: RankdError) => RunResult;
}

/** Previews an undo, like `rankd history undo --dry-run`. Throws the same errors as `findUndoTargets`. */
export async function previewUndo(
  app: DaemonContext,
  selection: ChangeSelection,
  { by, stop }: { by: string; stop: AbortSignal },
): Promise<UndoPreview> {
  const targets = await findUndoTargets(app, selection, { maxChanges: maxMembers });
  const command = { selection, undoId: targets.undoId, by, dryRun: true };
  const { members, changes } = targets;
  return { targets, run: await runUndo(app, { members, changes, command }, { stop, report: () => undefined }) };
}

/**
 * Runs the dashboard's undos and lists, one at a time. A run continues after the browser tab is closed. When the daemon
 * stops, the run finishes the members in flight and then stops.
 */
export class PageRuns implements AsyncDisposable {
  readonly #runs = new Map<string, PageRun>();
  readonly #stopping = new AbortController();
  readonly #report: () => void;
  #running: Promise<void> | undefined;

  /** `report` is called after each member of a run, and at its end. */
  constructor(report: () => void) {
    this.#report = report;
  }

  /**
   * Undoes the changes with these ids, which the preview showed. Throws `conflict` while another run is in progress,
   * and the same errors as `findUndoTargets`.
   */
  undo(app: DaemonContext, { ids, by }: { ids: string[]; by: string }): Promise<PageRun> {
    return this.#start(app, async () => {
      const selection = { ids };
      const targets = await findUndoTargets(app, selection, { maxChanges: maxMembers });
      const { undoId, members, answered, changes } = targets;
      const command = { selection, undoId, by, dryRun: false };
      const resultOf = (run: UndoRun) => ({ undo: undoDocument({ targets, run, dryRun: false }) });
      return {
        ...{ id: undoId, members: members.length },
        work: async (control) => {
          const isEmpty = members.length === 0;
          const run = isEmpty ? nothing : await runUndo(app, { members, answered, changes, command }, control);
          return resultOf(await afterLateReads(app, run));
        },
        failed: (error) => resultOf({ ...nothing, left: members, error }),
      };
    });
  }

  /** Changes a list of members, like `rankd rank set --file`. Throws `conflict` while another run is in progress. */
  list(app: DaemonContext, { command, members }: { command: ListCommand; members: ListedMember[] }): Promise<PageRun> {
    return this.#start(app, async () => {
      const plan = await planList(app, command, members);
      return {
        ...{ id: plan.id, members: members.length },
        work: async (control) => {
          const run = await listAfterLateReads(app, await runList(app, { plan, command, members }, control));
          const isDone = run.left.length === 0 && run.results.every((result) => 'change' in result);
          if (isDone) await recordList(app, 'end', { plan, command, members });
          return { list: listDocument({ plan, run }) };
        },
        failed: (error) => ({ list: listDocument({ plan, run: { results: [], left: members, error } }) }),
      };
    });
  }

  find(id: string): PageRun {
    const run = this.#runs.get(id);
    if (run !== undefined) return run;
    throw new RankdError('not_found', 'The page has no undo or list with this id.', {
      hint: `rankd history list --by web`,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    while (this.#running !== undefined) await this.#running;
  }

  async #start(app: DaemonContext, plan: () => Promise<PlannedRun>): Promise<PageRun> {
    if (this.#running !== undefined) throw alreadyRunning();
    const begun = Promise.withResolvers<void>();
    this.#running = begun.promise;
    try {
      const planned = await plan();
      const run: PageRun = { id: planned.id, members: planned.members, done: 0, result: undefined };
      this.#remember(run);
      this.#running = this.#carryOut(app, run, planned).finally(() => {
        this.#running = undefined;
        this.#report();
      });
      return run;
    } catch (error) {
      this.#running = undefined;
      throw error;
    } finally {
      begun.resolve();
    }
  }

  async #carryOut(app: DaemonContext, run: PageRun, { work, failed }: PlannedRun): Promise<void> {
    const report = (done: number) => {
      run.done = done;
      this.#report();
    };
    try {
      run.result = await work({ stop: this.#stopping.signal, report });
    } catch (cause) {
      app.log.error({ err: cause, runId: run.id }, 'an undo or list of the page failed');
      run.result = failed(asRankdError(cause));
    }
  }

  #remember(run: PageRun): void {
    this.#runs.delete(run.id); // a resumed run becomes the newest one
    this.#runs.set(run.id, run);
    const [oldest] = this.#runs.keys();
    if (this.#runs.size > maxRuns && oldest !== undefined) this.#runs.delete(oldest);
  }
}

const nothing: UndoRun = { results: [], left: [], error: undefined };

function alreadyRunning(): RankdError {
  return new RankdError('conflict', 'The page is running another undo or list.', {
    hint: 'wait until it has finished',
  });
}

/** `undo` or `list` contains the result once the run has ended. */
export function pageRunDocument({ id, members, done, result }: PageRun) {
  return { id, isRunning: result === undefined, done, members, undo: null, list: null, ...result };
}
