import { type Command, Option } from 'commander';
import type { RankingApp } from '../../../app.ts';
import { RankdError } from '../../../base/errors.ts';
import { counted } from '../../../base/text.ts';
import type { ChangeSelection } from '../../../ports/index.ts';
import { findUsableKey, withKeyId } from '../../../usecases/keys/find-key.ts';
import {
  afterLateLooks,
  findUndoTargets,
  newestChange,
  runUndo,
  type UndoRun,
  type UndoTargets,
} from '../../../usecases/undo/undo-changes.ts';
import type { Cli } from '../../cli.ts';
import { confirm } from '../../input/confirm.ts';
import { whileLooking } from '../../late-looks.ts';
import { examples } from '../../output/help.ts';
import { Progress } from '../../output/terminal.ts';
import { queryOf, type SelectionOptions, withSelection } from './selection.ts';
import { printUndo } from './undo-report.ts';

interface UndoOptions extends Omit<SelectionOptions, 'state'> {
  undo?: string;
  last?: boolean;
  dryRun?: boolean;
}

const help = `
Every member whose rank the selected changes changed gets back exactly the roles from before the earliest of them, through the
same confirmation, pace and records as any change. The policy's ceiling, floor, locked roles and protected members hold as they
are configured now; cooldowns, steps and the breaker do not apply. Members are left alone and listed where
their newest change is not a selected one, or where Roblox shows other roles than that change left. What
an undo itself did is selected by its id only, with --undo, or by the ids of its changes. A suspension or temporary rank that a
selected change ended is in force again, until its old end; if that has passed, the member gets the roles from before it.

Ctrl-C ends it once the members in hand are done; a second one ends it at once. The same command, run again, goes on
with what is left.
`;

export function undoCommand(history: Command, cli: Cli): void {
  withSelection(history.command('undo').description('put back the roles that members held before these rank changes'))
    .argument('[change...]', 'ids of rank changes, as the list shows them')
    .option('--undo <id>', 'take back what this undo did')
    .addOption(new Option('--last', 'only the newest of them').conflicts('undo'))
    .option('--dry-run', 'check everything and show what would be done; change nothing')
    .addHelpText(
      'after',
      `${help}${examples(
        'rankd history undo chg_VbflntX4kQ2mX7Lp',
        'rankd history undo --last',
        'rankd history undo --user 1001',
        'rankd history undo --key my-game --since 1h --dry-run',
        'rankd history undo --key my-game --since 2026-05-01T18:00Z --until 2026-05-01T19:00Z',
        'rankd history undo --ranker 1003 --since 24h -y',
        'rankd history undo --undo undo_0aB1cD2eF3gH',
      )}`,
    )
    .action((ids: string[], options: UndoOptions) => undo(cli, ids, options));
}

async function undo(
  cli: Cli,
  ids: string[],
  { undo: undoId, last = false, dryRun = false, ...options }: UndoOptions,
): Promise<void> {
  if (last && ids.length > 0)
    throw new RankdError('usage', '--last goes without ids.', { hint: 'leave one of them out' });
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
        `Put back the roles of ${counted(targets.members.length, 'member')} (${counted(targets.changes, 'change')})?`,
      );
    }
    const run = await carryOut(cli, app, { targets, selection, dryRun });
    printUndo(cli, { targets, selection, dryRun, run });
  };
  await cli.withRanking(work, { isWriting: !dryRun });
}

/** Refuses a name that could mean another key: nobody wants to undo what that one did. */
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
    cli.say('Stopping: the members in hand are finished first. Ctrl-C again stops at once.');
  });
  const run = await whileLooking(cli, app, async () => {
    using progress = new Progress(cli.line, members.length);
    return await runUndo(
      app,
      { members, answered, changes, command: { selection, undoId, by: cli.by, dryRun } },
      { stop: stopping.signal, report: (done) => progress.show(done) },
    );
  });
  return { ...(await afterLateLooks(app, run)), isInterrupted: stopping.signal.aborted };
}

/** Refuses to undo everything that ever happened. What happened to one member may be undone as a whole. */
function refuseVague({ key, place, ranker, by, user, since }: UndoOptions): void {
  if (user !== undefined) return;
  const isNamed = [key, place, ranker, by].some((option) => option !== undefined);
  if (isNamed && since !== undefined) return;
  throw new RankdError('usage', isNamed ? 'Say since when, with --since.' : 'Say which changes to undo.', {
    hint: isNamed
      ? 'rankd history undo --key KEY --since 1h --dry-run'
      : 'name the id of a change, or add --user, --key, --place, --ranker, --by or --undo',
  });
}

/** Warns if the key still works: it may go on doing what is being undone. */
async function warnOfKey(cli: Cli, app: RankingApp, { keyId, until }: ChangeSelection): Promise<void> {
  const key = keyId === undefined || until !== undefined ? undefined : await findUsableKey(app, keyId);
  if (key !== undefined)
    cli.say(`warning: key "${key.name}" still works; if it has leaked: rankd key revoke ${key.name}`);
}
