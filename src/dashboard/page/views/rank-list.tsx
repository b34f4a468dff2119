import { useSignal } from '@preact/signals';
import { type ApiError, send } from '../api.ts';
import type { List, Run } from '../documents.ts';
import { roles, useLive } from '../live.ts';
import { Member } from '../parts/change-words.tsx';
import type { Appearance } from '../parts/chip.tsx';
import { Confirm, OtherProblem } from '../parts/dialog.tsx';
import { Field, FormError, Reason, textOf } from '../parts/form.tsx';
import { Notice } from '../parts/notice.tsx';
import { RoleField } from '../parts/roles.tsx';
import { Table } from '../parts/table.tsx';
import { MemberOutcomes, RunDialog } from './run-dialog.tsx';
import { counted } from './view.tsx';

const appearances: Record<List['members'][number]['state'], Appearance & { words: string }> = {
  changed: { tone: 'good', icon: 'yes', words: 'changed' },
  already: { tone: 'quiet', icon: 'yes', words: 'no change needed' },
  done: { tone: 'quiet', icon: 'yes', words: 'done before' },
  refused: { tone: 'warn', icon: 'barred', words: 'refused' },
  unknown: { tone: 'odd', icon: 'asked', words: 'unknown' },
};

const actions = {
  set: 'Set the rank of all',
  promote: 'Promote each',
  demote: 'Demote each',
  give: 'Give the role to all',
  take: 'Take the role from all',
} as const;

interface RequestedList {
  does: keyof typeof actions;
  rank?: number;
  reason: string;
}

interface Listed {
  line: number;
  rankeeId: number;
  rankeeName: string;
}

/** Changes the ranks or roles of a list of members, which can be pasted from a spreadsheet. */
export function ListForm() {
  const alongside = useLive(roles).data?.alongside ?? [];
  const does = useSignal<RequestedList['does']>('set');
  const isOfRole = does.value === 'give' || does.value === 'take';
  const error = useSignal<ApiError | undefined>(undefined);
  const isBusy = useSignal(false);
  const checked = useSignal<{ asked: RequestedList; members: Listed[] } | undefined>(undefined);
  const check = async (values: FormData) => {
    isBusy.value = true;
    error.value = undefined;
    const rank = textOf(values, 'rank');
    const asked = { does: does.value, ...(rank !== '' && { rank: Number(rank) }), reason: textOf(values, 'reason') };
    try {
      const { members } = await send<{ members: Listed[] }>('list/test', { ...asked, users: values.get('users') });
      checked.value = { asked, members };
    } catch (failed) {
      error.value = failed as ApiError;
    }
    isBusy.value = false;
  };
  return (
    <details class="sheet fold">
      <summary>A list of members</summary>
      <FormError.Provider value={error.value}>
        <form
          class="stack"
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            if (!isBusy.value) void check(new FormData(event.currentTarget));
          }}
        >
          <Field
            name="users"
            label="Members"
            hint="One on each line: a user name, an id or a profile address. In rows from a spreadsheet, only the first column is used."
          >
            {(about) => <textarea rows={6} spellcheck={false} {...about} />}
          </Field>
          <div class="columns">
            <Field name="does" label="Change">
              {(about) => (
                <select
                  {...about}
                  onChange={(event) => {
                    does.value = event.currentTarget.value as RequestedList['does'];
                  }}
                >
                  {Object.entries(actions).map(
                    ([name, words]) =>
                      (alongside.length > 0 || (name !== 'give' && name !== 'take')) && (
                        <option key={name} value={name}>
                          {words}
                        </option>
                      ),
                  )}
                </select>
              )}
            </Field>
            {does.value === 'set' && <RoleField name="rank" label="New rank" />}
            {isOfRole && <RoleField name="rank" label="Extra role" among={alongside} />}
            <Reason />
          </div>
          <OtherProblem error={error.value} />
          <div class="row">
            <button type="submit" disabled={isBusy.value}>
              {isBusy.value ? 'Checking…' : 'Check the list…'}
            </button>
          </div>
        </form>
      </FormError.Provider>
      {checked.value !== undefined && (
        <ListDialog
          {...checked.value}
          onClose={() => {
            checked.value = undefined;
          }}
        />
      )}
    </details>
  );
}

function ListDialog({ asked, members, onClose }: { asked: RequestedList; members: Listed[]; onClose: () => void }) {
  const run = useSignal<string | undefined>(undefined);
  if (run.value !== undefined) {
    return (
      <RunDialog id={run.value} subject="list" resultOf={(run) => run.list} summary={summary} onClose={onClose}>
        {({ members, left, stoppedBy }) => (
          <MemberOutcomes members={members} appearances={appearances} stoppedBy={stoppedBy}>
            {left.length > 0 && (
              <Notice>
                {counted(left.length, 'member')} {left.length === 1 ? 'was' : 'were'} not reached. Run the same list
                again to continue.
              </Notice>
            )}
          </MemberOutcomes>
        )}
      </RunDialog>
    );
  }
  const start = async (_: FormData, once: string) => {
    const users = members.map(({ rankeeId }) => rankeeId).join('\n');
    return (await send<{ run: Run }>('list/run', { ...asked, users }, once)).run.id;
  };
  return (
    <Confirm
      title={`${actions[asked.does]}?`}
      lead="Each member is checked when their turn comes. Nothing has been changed yet."
      verb={`Change ${counted(members.length, 'member')}`}
      act={start}
      onDone={(id) => {
        run.value = id;
      }}
      onClose={onClose}
    >
      <Table caption="Members on this list" columns={['Member', { title: 'Line', class: 'number' }]}>
        {members.map((member) => (
          <tr key={member.rankeeId}>
            <th scope="row">
              <Member {...member} />
            </th>
            <td class="number soft">{member.line}</td>
          </tr>
        ))}
      </Table>
    </Confirm>
  );
}

function summary({ members }: List, run: Run): string {
  const changed = members.filter(({ state }) => state === 'changed').length;
  return `${changed} of ${counted(run.members, 'member')} changed.`;
}
