import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type ApiError, read, send } from '../api.ts';
import type { Run, Undo, UndoPreview } from '../documents.ts';
import { Live, useLive } from '../live.ts';
import { Member } from '../parts/change-words.tsx';
import { Chip, type Tone } from '../parts/chip.tsx';
import { Dialog } from '../parts/dialog.tsx';
import type { IconName } from '../parts/icon.tsx';
import { Notice, Problem } from '../parts/notice.tsx';
import { Table } from '../parts/table.tsx';

const states: Record<Undo['members'][number]['state'], { tone: Tone; icon: IconName; words: string }> = {
  would_put_back: { tone: 'open', icon: 'back', words: 'would be put back' },
  put_back: { tone: 'good', icon: 'yes', words: 'put back' },
  already: { tone: 'quiet', icon: 'yes', words: 'already so' },
  changed_since: { tone: 'warn', icon: 'barred', words: 'changed since' },
  left_group: { tone: 'quiet', icon: 'no', words: 'left the group' },
  refused: { tone: 'warn', icon: 'barred', words: 'refused' },
  unknown: { tone: 'odd', icon: 'asked', words: 'unknown' },
};

/** Previews an undo; runs exactly that after confirmation; then shows its progress, and the outcome for each member. */
export function UndoDialog({ query, onClose }: { query: string; onClose: () => void }) {
  const preview = useSignal<UndoPreview | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  const run = useSignal<string | undefined>(undefined);
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
  if (run.value !== undefined) return <UndoRun id={run.value} onClose={onClose} />;

  const confirm = async (ids: string[]) => {
    try {
      run.value = (await send<{ run: Run }>('undo', { ids })).run.id;
    } catch (failed) {
      error.value = failed as ApiError;
    }
  };
  const shown = preview.value;
  const count = shown?.undo.members.filter(({ state }) => state === 'would_put_back').length ?? 0;
  const footer = (
    <>
      <button type="button" onClick={onClose}>
        {count > 0 ? 'Cancel' : 'Close'}
      </button>
      {shown !== undefined && count > 0 && (
        <button type="button" class="main" onClick={() => void confirm(shown.ids)}>
          Put {count === 1 ? 'this member' : `${count} members`} back
        </button>
      )}
    </>
  );
  return (
    <Dialog
      title="Undo"
      lead="Each member gets the earlier roles back. Nothing has been changed yet."
      footer={footer}
      onClose={onClose}
    >
      {error.value !== undefined && <Problem error={error.value} />}
      {error.value === undefined && shown === undefined && (
        <p class="soft" role="status">
          Looking at the members as they are now…
        </p>
      )}
      {shown !== undefined && <Outcome undo={shown.undo} />}
    </Dialog>
  );
}

function UndoRun({ id, onClose }: { id: string; onClose: () => void }) {
  const live = useMemo(() => new Live('run', async () => (await read<{ run: Run }>(`run?id=${id}`)).run), [id]);
  const { data: run, error } = useLive(live);
  const undo = run?.undo ?? undefined;
  const footer = (
    <button type="button" class={undo === undefined ? '' : 'main'} onClick={onClose}>
      Close
    </button>
  );
  const lead = undo === undefined ? 'The undo continues if you close this.' : summary(undo);
  return (
    <Dialog
      title={undo === undefined ? 'Undo is running' : 'Undo is done'}
      lead={lead}
      footer={footer}
      onClose={onClose}
    >
      {error !== undefined && <Problem error={error} />}
      {undo === undefined && (
        <div>
          <p role="status">
            {run === undefined
              ? 'It begins…'
              : `${run.done} of ${run.members} ${run.members === 1 ? 'member' : 'members'}`}
          </p>
          <progress aria-label="Progress of the undo" max={run?.members ?? 1} value={run?.done ?? 0} />
        </div>
      )}
      {undo !== undefined && <Outcome undo={undo} />}
    </Dialog>
  );
}

function summary({ members }: Undo): string {
  const done = members.filter(({ state }) => state === 'put_back').length;
  return `${done} of ${members.length} ${members.length === 1 ? 'member has' : 'members have'} the earlier roles again.`;
}

const columns = ['Member', { title: 'Outcome', class: 'roomy' }, 'State'];

/** The outcome for each member. */
function Outcome({ undo: { members, left, stoppedBy, undosLeftOut } }: { undo: Undo }) {
  return (
    <>
      {stoppedBy !== null && <Notice tone="bad">It stopped: {stoppedBy.message}</Notice>}
      {left.length > 0 && (
        <Notice>{left.length === 1 ? '1 member was' : `${left.length} members were`} left as they are.</Notice>
      )}
      {undosLeftOut > 0 && <Notice>{undosLeftOut} of these are undos themselves. They are left out.</Notice>}
      {members.length === 0 ? (
        <p class="soft">There is nothing to take back: no applied change is among these.</p>
      ) : (
        <Table caption="The outcome for each member" columns={columns}>
          {members.map((member) => {
            const { words, ...look } = states[member.state];
            return (
              <tr key={member.rankeeId}>
                <th scope="row">
                  <Member {...member} />
                  <p class="tight small soft name">{member.message}</p>
                </th>
                <td class="roomy name">{member.message}</td>
                <td>
                  <Chip {...look}>{words}</Chip>
                </td>
              </tr>
            );
          })}
        </Table>
      )}
    </>
  );
}
