import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type ApiError, send } from '../api.ts';
import type { Change, Hold } from '../documents.ts';
import { roles, suspensions, useLive } from '../live.ts';
import { Member, memberName } from '../parts/change-words.tsx';
import { type Appearance, Chip } from '../parts/chip.tsx';
import { Confirm, Done } from '../parts/dialog.tsx';
import { mayChange, Reason, textOf } from '../parts/form.tsx';
import { Problem, Shell } from '../parts/notice.tsx';
import { Empty, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { addressOf } from '../route.ts';
import { counted, LiveView } from './view.tsx';

const states: Record<Hold['state'], Appearance> = {
  active: { tone: 'open', icon: 'waiting' },
  ending: { tone: 'open', icon: 'back' },
  ended: { tone: 'quiet', icon: 'yes' },
  lifted: { tone: 'good', icon: 'yes' },
  superseded: { tone: 'quiet', icon: 'barred' },
  forfeited: { tone: 'quiet', icon: 'no' },
  stuck: { tone: 'bad', icon: 'warning' },
};

/** Lists suspensions, temporary ranks and temporary roles, and lets the operator end them early. */
export function Suspensions() {
  const asked = useSignal<Hold | undefined>(undefined);
  return (
    <LiveView
      title="Suspensions"
      live={suspensions}
      lead={(list) => (list.length === 0 ? '' : counted(list.length, 'member'))}
    >
      {(list) => (
        <>
          <section class="sheet" aria-label="Suspensions">
            {list.length === 0 ? (
              <NoSuspensions />
            ) : (
              <HoldsTable
                list={list}
                onAsk={(hold) => {
                  asked.value = hold;
                }}
              />
            )}
          </section>
          {asked.value !== undefined && (
            <Lift
              hold={asked.value}
              onClose={() => {
                asked.value = undefined;
              }}
            />
          )}
        </>
      )}
    </LiveView>
  );
}

function NoSuspensions() {
  return (
    <Empty icon="suspensions" title="No member is suspended">
      <p>
        A suspension takes away all of a member’s roles and gives them back when it ends. To suspend a member, find them
        under <a href={addressOf('rank')}>Rank</a>. A game needs a key with the scope suspend. In a shell, run
      </p>
      <Shell line={'rankd rank suspend USER --for 3d --reason "spam"'} />
    </Empty>
  );
}

/** Names a hold's kind. `alongside` contains the ids of the extra roles. */
export function holdName({ kind, rolesBefore, rolesDuring }: Hold, alongside: readonly number[]): string {
  if (kind === 'suspension') return 'suspension';
  const isOfRole = rolesDuring.some((id) => alongside.includes(id) && !rolesBefore.includes(id));
  return isOfRole ? 'temporary role' : 'temporary rank';
}

const columns = [
  'Member',
  'Ends',
  { title: 'Reason', class: 'wide' },
  { title: 'By', class: 'wide' },
  'State',
  { spoken: 'Actions' },
];

function HoldsTable({ list, onAsk }: { list: Hold[]; onAsk: (hold: Hold) => void }) {
  const alongside = useLive(roles).data?.alongside ?? [];
  return (
    <Table caption="Suspensions and temporary ranks, newest first" columns={columns}>
      {list.map((hold) => (
        <tr key={hold.id}>
          <th scope="row">
            <a class="quiet" href={addressOf('rank', { user: `${hold.rankeeId}` })}>
              <Member {...hold} />
            </a>
            {hold.kind === 'temporary' && <p class="small soft">{holdName(hold, alongside)}</p>}
            <p class="small soft name narrow">{hold.reason}</p>
          </th>
          <td>
            {hold.endsAt === null ? 'when it is lifted' : <Time at={hold.endsAt} />}
            <p class="small soft">
              began <Time at={hold.beginsAt} />
            </p>
          </td>
          <td class="wide name">{hold.reason ?? <span class="soft">none given</span>}</td>
          <td class="wide name">
            {hold.rankerId === 0 ? hold.by.replace(/^(cli|web):/, '') : hold.rankerName || hold.rankerId}
          </td>
          <td>
            <Chip {...states[hold.state]}>{hold.state}</Chip>
            {hold.message !== '' && <p class="small soft name">{hold.message}</p>}
          </td>
          <td class="number">
            {mayChange.value && ['active', 'stuck'].includes(hold.state) && (
              <button type="button" class="small" onClick={() => onAsk(hold)}>
                {verbOf(hold)}
                <span class="unseen">
                  {' '}
                  the {holdName(hold, alongside)} of {memberName(hold)}
                </span>
              </button>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function verbOf({ kind }: Hold): string {
  return kind === 'suspension' ? 'Lift' : 'End';
}

export function Lift({ hold, onClose }: { hold: Hold; onClose: () => void }) {
  const alongside = useLive(roles).data?.alongside ?? [];
  const mayForce = useSignal(false);
  const force = useSignal(false);
  const tested = useSignal<string | ApiError | undefined>(undefined);
  const outcome = useSignal<Change | undefined>(undefined);
  const asked = { user: hold.rankeeId, force: force.value };
  const offerForce = (error: ApiError) => {
    if (error.details.code === 'conflict') mayForce.value = true;
  };
  useEffect(() => {
    let isGone = false;
    tested.value = undefined;
    void send<{ message: string }>('suspensions/test', asked)
      .then(({ message }) => message)
      .catch((error: ApiError) => {
        offerForce(error);
        return error;
      })
      .then((result) => {
        if (!isGone) tested.value = result;
      });
    return () => {
      isGone = true;
    };
  }, [force.value]);
  const lift = async (values: FormData, once: string) => {
    try {
      const reason = textOf(values, 'reason');
      const { change } = await send<{ change: Change }>('suspensions/lift', { ...asked, reason }, once);
      suspensions.invalidate();
      return change;
    } catch (error) {
      offerForce(error as ApiError);
      throw error;
    }
  };
  if (outcome.value !== undefined) return <Done change={outcome.value} onClose={onClose} />;
  return (
    <Confirm
      title={`${verbOf(hold)} the ${holdName(hold, alongside)} of ${memberName(hold)}?`}
      lead="Nothing has been changed yet."
      verb={verbOf(hold)}
      isAllowed={typeof tested.value === 'string'}
      act={lift}
      onDone={(change) => {
        outcome.value = change;
      }}
      onClose={onClose}
    >
      <div aria-live="polite">
        {tested.value === undefined && <p class="soft">Checking…</p>}
        {typeof tested.value === 'string' && <p class="preview strong name">{tested.value}</p>}
        {typeof tested.value === 'object' && <Problem error={tested.value} />}
      </div>
      <Reason />
      {mayForce.value && (
        <label class="row check">
          <input
            type="checkbox"
            name="force"
            onChange={({ currentTarget }) => {
              force.value = currentTarget.checked;
            }}
          />
          Do it anyway, and replace the member’s current roles
        </label>
      )}
    </Confirm>
  );
}
