import type { RankingApp } from '../../app.ts';
import { RankdError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import { isoTime } from '../../base/time.ts';
import { userTitle } from '../../core/describe.ts';
import type { ChangeSelection } from '../../ports/index.ts';
import { withId } from '../../usecases/history/change-document.ts';
import { findUsableKey, withKeyId } from '../../usecases/keys/find-key.ts';
import {
  afterLateReads,
  findUndoTargets,
  newestChange,
  runUndo,
  type UndoRun,
  type UndoTargets,
  undoSummary,
  undoWords,
} from '../../usecases/undo/undo-changes.ts';
import { undoDocument, undoMessage } from '../../usecases/undo/undo-document.ts';
import type { MemberUndo, Rankee } from '../../usecases/undo/undo-member.ts';
import type { Cli } from '../cli.ts';
import { argument, command, flag, option, type ValuesOf } from '../command.ts';
import { confirm } from '../input/confirm.ts';
import { queryOf, selection } from '../input/selection.ts';
import { withVerification } from '../late-reads.ts';
import { ExitCode, exitCodeOfRun, formatError } from '../output/errors.ts';
import { table } from '../output/table.ts';
import { Progress } from '../output/terminal.ts';

const undoOptions = {
  ...selection,
  undo: option('--undo <id>', 'revert this earlier undo'),
  last: flag('--last', 'only the newest matching change').conflicts('undo'),
  dryRun: flag('--dry-run', 'check everything and show what would be done; change nothing'),
};

export const undoCommand = command({
  name: 'undo',
  about: 'give members back the roles that they held before these rank changes',
  args: [argument('[change...]', 'ids of rank changes, as the list shows them')],
  options: undoOptions,
  help: `
Each member gets back exactly the roles from before the earliest of their selected changes. rankd confirms, paces and records
these changes like any other. The policy's current ceiling, floor, locked roles and protected members apply; cooldowns, steps
and the breaker do not. rankd skips a member and lists them if their newest change is not selected, or if their roles on Roblox
are not the ones that this change left. Changes made by an undo are selected only by --undo with its id, or by their own ids.
If a selected change ended a suspension or a temporary rank, rankd restores it until its original end; if that end has passed,
the member gets the roles from before it.

Ctrl-C stops after the members in progress; a second Ctrl-C stops at once. Run the same command again to continue with the rest.
`,
  examples: [
    'rankd history undo chg_VbflntX4kQ2mX7Lp',
    'rankd history undo --last',
    'rankd history undo --user 1001',
    'rankd history undo --key my-game --since 1h --dry-run',
    'rankd history undo --key my-game --since 2026-05-01T18:00Z --until 2026-05-01T19:00Z',
    'rankd history undo --ranker 1003 --since 24h -y',
    'rankd history undo --undo undo_0aB1cD2eF3gH',
  ],
  run: undo,
});

type UndoOptions = ValuesOf<typeof undoOptions>;

async function undo(cli: Cli, ids: string[], { undo: undoId, last, dryRun, ...options }: UndoOptions): Promise<void> {
  if (last && ids.length > 0)
    throw new RankdError('usage', "--last can't be combined with ids.", { hint: 'leave one of them out' });
  if (ids.length === 0 && undoId === undefined && !last) refuseVague(options);
  const query = await queryOf(cli, options);
  const work = async (app: RankingApp) => {
    const asked = await withKeyId(app, query, refuse);
    const named = last ? [await newestChange(app, asked)] : ids;
    const selection = { ...asked, undoId, ...(named.length > 0 && { ids: named }) };
    const targets = await findUndoTargets(app, selection);
    await warnOfKey(cli, app, selection);
    if (!dryRun && targets.members.length > 0) {
      await confirm(
        cli,
        `Restore the roles of ${membersTitle(targets.members)} (${counted(targets.changes, 'change')})?`,
      );
    }
    const run = await carryOut(cli, app, { targets, selection, dryRun });
    printUndo(cli, { targets, selection, dryRun, run });
  };
  await cli.withRanking(work, { isWriting: !dryRun });
}

function membersTitle(members: Rankee[]): string {
  return members.length > 3
    ? counted(members.length, 'member')
    : members.map(({ rankeeId, rankeeName }) => userTitle(rankeeId, rankeeName || undefined)).join(', ');
}

/** Rejects an ambiguous key name, because the undo could affect a different key's changes. */
function refuse(ambiguity: RankdError): never {
  throw ambiguity;
}

async function carryOut(
  cli: Cli,
  app: RankingApp,
  { targets, selection, dryRun }: { targets: UndoTargets; selection: ChangeSelection; dryRun: boolean },
): Promise<UndoRun & { isInterrupted: boolean }> {
  const { undoId, members, answered, changes } = targets;
  if (members.length === 0) return { results: [], left: [], error: undefined, isInterrupted: false };
  const stopping = new AbortController();
  void cli.io.stopSignal.then(() => {
    stopping.abort();
    cli.say('Stopping after the members in progress. Press Ctrl-C again to stop at once.');
  });
  const run = await withVerification(cli, app, async () => {
    using progress = new Progress(cli.line, members.length);
    return await runUndo(
      app,
      { members, answered, changes, command: { selection, undoId, by: cli.by, dryRun } },
      { stop: stopping.signal, report: (done) => progress.show(done) },
    );
  });
  return { ...(await afterLateReads(app, run)), isInterrupted: stopping.signal.aborted };
}

/** Rejects a selection unless it names one member, or a start time and a key, place, ranker or operator. */
function refuseVague({ key, place, ranker, by, user, since }: Omit<UndoOptions, 'dryRun' | 'last'>): void {
  if (user !== undefined) return;
  const isNamed = [key, place, ranker, by].some((option) => option !== undefined);
  if (isNamed && since !== undefined) return;
  throw new RankdError('usage', isNamed ? 'Give a start time with --since.' : 'Name the changes to undo.', {
    hint: isNamed
      ? 'add --since 1h, and --dry-run to see what would be undone'
      : 'name the id of a change, or add --last, --user, --key, --place, --ranker, --by or --undo',
  });
}

/**
 * Warns if the selection names a key that still works, because the key could be used to repeat the undone changes. Does
 * not warn if the selection has an end time.
 */
async function warnOfKey(cli: Cli, app: RankingApp, { keyId, until }: ChangeSelection): Promise<void> {
  const key = keyId === undefined || until !== undefined ? undefined : await findUsableKey(app, keyId);
  if (key !== undefined)
    cli.say(`warning: key "${key.name}" still works; if it has leaked: rankd key revoke ${key.name}`);
}

interface Undone {
  targets: UndoTargets;
  selection: ChangeSelection;
  dryRun: boolean;
  run: UndoRun & { isInterrupted: boolean };
}

type Result = Rankee & MemberUndo;

/**
 * Prints a summary, and the members whose roles could not be restored; for a dry run, also those whose roles would be
 * restored. Throws `ExitCode` if an undo failed, or if the run stopped early.
 */
function printUndo(cli: Cli, undone: Undone): void {
  const { targets, dryRun, run } = undone;
  const results = [...run.results, ...targets.answered];
  const isListed = ({ state }: Result) => state !== 'already' && (dryRun || state !== 'put_back');
  const rows = results
    .filter(isListed)
    .map((result) => [withId(result.rankeeName, result.rankeeId), undoWords[result.state], undoMessage(result)]);
  const summary = summaryOf(undone, results);
  cli.print({ undo: undoDocument(undone) }, table(['member', 'outcome', 'detail'], rows, { wrapsLast: true }), summary);
  if (run.error !== undefined && !cli.options.json)
    cli.io.stderr(cli.asTyped(formatError(run.error, { asJson: false })));
  if (targets.leftOut > 0)
    cli.say(
      `${counted(targets.leftOut, 'change')} made by an undo ${targets.leftOut === 1 ? 'was' : 'were'} left out; --undo ID reverts that undo.`,
    );
  if (run.left.length > 0) cli.say(`To continue with the rest: ${commandFor(undone)}`);
  else if (!dryRun && results.some(({ state }) => state === 'put_back'))
    cli.say(`To revert this: rankd history undo --undo ${targets.undoId}`);
  const code = exitCodeOfRun({ ...run, results });
  if (code !== 0) throw new ExitCode(code);
}

function summaryOf({ targets, run }: Undone, results: Result[]): string {
  if (targets.changes === 0) return 'No selected rank change took effect: there is nothing to undo.';
  return `${targets.undoId}: ${undoSummary({ ...run, results })}.`;
}

/**
 * Builds a command with the same selection, but with absolute times, because a duration would count from the time of
 * the new call.
 */
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
