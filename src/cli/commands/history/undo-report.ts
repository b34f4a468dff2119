import { counted } from '../../../base/text.ts';
import { isoTime } from '../../../base/time.ts';
import type { ChangeSelection } from '../../../ports/index.ts';
import { withId } from '../../../usecases/documents/change.ts';
import { undoDocument, undoMessage } from '../../../usecases/documents/undo.ts';
import { type UndoRun, type UndoTargets, undoSummary, undoWords } from '../../../usecases/undo/undo-changes.ts';
import type { MemberUndo, Rankee } from '../../../usecases/undo/undo-member.ts';
import type { Cli } from '../../cli.ts';
import { ExitCode, exitCodes, formatError } from '../../output/errors.ts';
import { table } from '../../output/table.ts';

interface Undone {
  targets: UndoTargets;
  selection: ChangeSelection;
  dryRun: boolean;
  run: UndoRun & { isInterrupted: boolean };
}

type Result = Rankee & MemberUndo;

/** Prints what became of every member, and a summary. The exit code tells whether anything is left to do. */
export function printUndo(cli: Cli, undone: Undone): void {
  const { targets, dryRun, run } = undone;
  const results = [...run.results, ...targets.answered];
  const isTold = ({ state }: Result) => state !== 'already' && (dryRun || state !== 'put_back');
  const rows = results
    .filter(isTold)
    .map((result) => [withId(result.rankeeName, result.rankeeId), undoWords[result.state], undoMessage(result)]);
  const summary = summaryOf(undone, results);
  cli.print({ undo: undoDocument(undone) }, table(['member', 'outcome', 'detail'], rows, { wrapsLast: true }), summary);
  if (run.error !== undefined && !cli.options.json)
    cli.io.stderr(cli.asTyped(formatError(run.error, { asJson: false })));
  if (targets.leftOut > 0)
    cli.say(`${counted(targets.leftOut, 'change')} by an undo left out; --undo ID takes back what that undo did.`);
  if (run.left.length > 0) cli.say(`To go on with what is left: ${commandFor(undone)}`);
  else if (!dryRun && results.some(({ state }) => state === 'put_back'))
    cli.say(`To take this back: rankd history undo --undo ${targets.undoId}`);
  const code = exitCodeOf(undone, results);
  if (code !== 0) throw new ExitCode(code);
}

function summaryOf({ targets, run }: Undone, results: Result[]): string {
  if (targets.changes === 0) return 'No selected rank change took effect: there is nothing to undo.';
  return `${targets.undoId}: ${undoSummary({ ...run, results })}.`;
}

/** The command that selects the same, with its times as moments: a duration would mean another time by then. */
function commandFor({ selection, dryRun }: Undone): string {
  const { ids = [], keyId, placeId, rankerId, rankeeId, by, undoId, since, until } = selection;
  const moment = (at: number | undefined) => at !== undefined && isoTime(at);
  const flags = {
    key: keyId,
    place: placeId,
    ranker: rankerId,
    user: rankeeId,
    by: by !== undefined && `'${by.replaceAll("'", "'\\''")}'`,
    undo: undoId,
    since: moment(since),
    until: moment(until),
  };
  const given = Object.entries(flags).flatMap(([name, value]) =>
    value === undefined || value === false ? [] : [`--${name} ${value}`],
  );
  return ['rankd history undo', ...ids, ...given, ...(dryRun ? ['--dry-run'] : [])].join(' ');
}

/** Members that were left alone are not a failure: that is how undo works. */
function exitCodeOf({ run }: Undone, results: Result[]): number {
  if (run.isInterrupted && run.left.length > 0) return 130;
  if (run.error !== undefined) return exitCodes[run.error.code];
  if (results.some(({ state }) => state === 'unknown')) return exitCodes.outcome_unknown;
  return results.some(({ state }) => state === 'refused') ? 5 : 0;
}
