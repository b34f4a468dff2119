import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type ApiError, newKey, read, send } from '../api.ts';
import type { Run, Undo, UndoPreview } from '../documents.ts';
import type { Appearance } from '../parts/chip.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Notice, Problem } from '../parts/notice.tsx';
import { MemberOutcomes, RunDialog } from './run-dialog.tsx';
import { counted } from './view.tsx';

const appearances: Record<Undo['members'][number]['state'], Appearance & { words: string }> = {
  would_put_back: { tone: 'open', icon: 'back', words: 'would be put back' },
  put_back: { tone: 'good', icon: 'yes', words: 'put back' },
  already: { tone: 'quiet', icon: 'yes', words: 'no change needed' },
  changed_since: { tone: 'warn', icon: 'barred', words: 'changed since' },
  left_group: { tone: 'quiet', icon: 'no', words: 'left the group' },
  refused: { tone: 'warn', icon: 'barred', words: 'refused' },
  unknown: { tone: 'odd', icon: 'asked', words: 'unknown' },
};

/** Previews an undo, runs it after confirmation, and shows its progress and the outcome for each member. */
export function UndoDialog({ query, onClose }: { query: string; onClose: () => void }) {
  const preview = useSignal<UndoPreview | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  const run = useSignal<string | undefined>(undefined);
  const isBusy = useSignal(false);
  const once = useMemo(newKey, []);
  useEffect(() => {
    const gone = new AbortController();
    read<UndoPreview>(`undo?${query}`, { isSlow: true, signal: gone.signal }).then(
      (answer) => {
        preview.value = answer;
      },
      (failed) => {
        if (!gone.signal.aborted) error.value = failed;
      },
    );
    return () => gone.abort();
  }, [query]);
  if (run.value !== undefined) {
    return (
      <RunDialog id={run.value} subject="undo" resultOf={(run) => run.undo} summary={summary} onClose={onClose}>
        {(undo) => <Outcome undo={undo} />}
      </RunDialog>
    );
  }

  const confirm = async (ids: string[]) => {
    isBusy.value = true;
    try {
      run.value = (await send<{ run: Run }>('undo', { ids }, once)).run.id;
    } catch (failed) {
      error.value = failed as ApiError;
    }
    isBusy.value = false;
  };
  const shown = preview.value;
  const count = shown?.undo.members.filter(({ state }) => state === 'would_put_back').length ?? 0;
  const footer = (
    <>
      <button type="button" onClick={onClose}>
        {count > 0 ? 'Cancel' : 'Close'}
      </button>
      {shown !== undefined && count > 0 && (
        <button type="button" class="main" disabled={isBusy.value} onClick={() => void confirm(shown.ids)}>
          Put {count === 1 ? 'this member' : `${count} members`} back
        </button>
      )}
    </>
  );
  return (
    <Dialog
      title="Undo"
      lead={`${count > 0 ? 'This restores the previous roles of every member who can be put back. ' : ''}Nothing has been changed yet.`}
      footer={footer}
      onClose={onClose}
    >
      {error.value !== undefined && <Problem error={error.value} />}
      {error.value === undefined && shown === undefined && (
        <p class="soft" role="status">
          Reading the members…
        </p>
      )}
      {shown !== undefined && <Outcome undo={shown.undo} />}
    </Dialog>
  );
}

function summary({ members }: Undo): string {
  const done = members.filter(({ state }) => state === 'put_back').length;
  return `${done} of ${members.length} ${members.length === 1 ? 'member' : 'members'} put back.`;
}

function Outcome({ undo: { members, left, stoppedBy, undosLeftOut } }: { undo: Undo }) {
  return (
    <MemberOutcomes members={members} appearances={appearances} stoppedBy={stoppedBy}>
      {left.length > 0 && (
        <Notice>{left.length === 1 ? '1 member was' : `${left.length} members were`} not reached.</Notice>
      )}
      {undosLeftOut > 0 && <Notice>Skipped {counted(undosLeftOut, 'change')} made by an undo.</Notice>}
      {members.length === 0 && left.length === 0 && (
        <p class="soft">
          {undosLeftOut > 0
            ? 'There is nothing else to undo.'
            : 'There is nothing to undo: none of these changes took effect.'}
        </p>
      )}
    </MemberOutcomes>
  );
}
