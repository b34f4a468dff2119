import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { read } from '../api.ts';
import type { Run } from '../documents.ts';
import { Live, useLive } from '../live.ts';
import { Member } from '../parts/change-words.tsx';
import { type Appearance, Chip } from '../parts/chip.tsx';
import { CloseButton, Dialog } from '../parts/dialog.tsx';
import { Notice, Problem } from '../parts/notice.tsx';
import { Table } from '../parts/table.tsx';
import { counted } from './view.tsx';

interface RunDialogProps<Result> {
  id: string;
  subject: 'undo' | 'list';
  /** Returns null while the run is in progress. */
  resultOf: (run: Run) => Result | null;
  summary: (result: Result, run: Run) => string;
  onClose: () => void;
  children: (result: Result) => ComponentChildren;
}

/** Shows the progress of a run, then its result. The run continues if the user closes the dialog. */
export function RunDialog<Result>({ id, subject, resultOf, summary, onClose, children }: RunDialogProps<Result>) {
  const live = useMemo(() => new Live('run', async () => (await read<{ run: Run }>(`run?id=${id}`)).run), [id]);
  const { data: run, error } = useLive(live);
  const result = run === undefined ? null : resultOf(run);
  const isDone = run !== undefined && result !== null;
  return (
    <Dialog
      title={`The ${subject} is ${isDone ? 'done' : 'running'}`}
      lead={isDone ? summary(result, run) : 'It continues if you close this dialog.'}
      footer={<CloseButton onClose={onClose} />}
      onClose={onClose}
    >
      {error !== undefined && <Problem error={error} />}
      {isDone ? (
        children(result)
      ) : (
        <div>
          <p role="status">{run === undefined ? 'Starting…' : `${run.done} of ${counted(run.members, 'member')}`}</p>
          <progress aria-label={`Progress of the ${subject}`} max={run?.members ?? 1} value={run?.done ?? 0} />
        </div>
      )}
    </Dialog>
  );
}

interface MemberOutcomesProps<State extends string> {
  members: Array<{ rankeeId: number; rankeeName: string; state: State; message: string }>;
  appearances: Record<State, Appearance & { words: string }>;
  stoppedBy: { message: string } | null;
  /** Notices above the table. */
  children: ComponentChildren;
}

export function MemberOutcomes<State extends string>(props: MemberOutcomesProps<State>) {
  const { members, appearances, stoppedBy, children } = props;
  return (
    <>
      {stoppedBy !== null && <Notice tone="bad">Stopped: {stoppedBy.message}</Notice>}
      {children}
      {members.length > 0 && (
        <Table
          caption="The outcome for each member"
          columns={['Member', { title: 'Outcome', class: 'roomy' }, 'State']}
        >
          {members.map((member) => {
            const { words, ...appearance } = appearances[member.state];
            return (
              <tr key={member.rankeeId}>
                <th scope="row">
                  <Member {...member} />
                  <p class="tight small soft name">{member.message}</p>
                </th>
                <td class="roomy name">{member.message}</td>
                <td>
                  <Chip {...appearance}>{words}</Chip>
                </td>
              </tr>
            );
          })}
        </Table>
      )}
    </>
  );
}
