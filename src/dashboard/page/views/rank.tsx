import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { read } from '../api.ts';
import type { FoundMember, Hold } from '../documents.ts';
import { Live, roles, useLive } from '../live.ts';
import { ChangeState, memberName } from '../parts/change-words.tsx';
import { Chip } from '../parts/chip.tsx';
import { OtherProblem } from '../parts/dialog.tsx';
import { FormError, mayChange, TextField, textOf } from '../parts/form.tsx';
import { Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { addressOf, go, route } from '../route.ts';
import { What } from './changes.tsx';
import { kinds, RankDialog } from './rank-dialog.tsx';
import { ListForm } from './rank-list.tsx';
import { holdName, Lift } from './suspensions.tsx';

export function Rank() {
  const user = route.value.params.get('user') ?? '';
  return (
    <>
      <div class="title">
        <h1>Rank</h1>
      </div>
      <Found key={user} user={user} />
      {mayChange.value && <ListForm />}
    </>
  );
}

function Found({ user }: { user: string }) {
  const live = useMemo(
    () =>
      new Live('changes', async () =>
        user === '' ? undefined : read<FoundMember>(`member?${new URLSearchParams({ user })}`),
      ),
    [user],
  );
  const { data, error } = useLive(live);
  return (
    <FormError.Provider value={error}>
      <form
        class="sheet search finder"
        onSubmit={(event) => {
          event.preventDefault();
          const asked = textOf(new FormData(event.currentTarget), 'user');
          if (asked === user) live.invalidate();
          else go('rank', { user: asked });
        }}
      >
        <TextField name="user" label="Member: user name, id or profile address" value={user} />
        <div class="row">
          <button type="submit" class="main">
            Find
          </button>
        </div>
      </form>
      <OtherProblem error={error} />
      {data !== undefined && error === undefined && <Card found={data} onDone={() => live.invalidate()} />}
      {user !== '' && data === undefined && error === undefined && (
        <p class="soft" role="status">
          Reading the member…
        </p>
      )}
    </FormError.Provider>
  );
}

function Card({ found, onDone }: { found: FoundMember; onDone: () => void }) {
  const { member, suspension, changes } = found;
  const asked = useSignal<keyof typeof kinds | Hold | undefined>(undefined);
  const close = () => {
    asked.value = undefined;
    onDone();
  };
  const name = member.name ?? `User ${member.userId}`;
  const highest = member.roles.find(({ id }) => id === member.highest);
  const alongside = useLive(roles).data?.alongside ?? [];
  const isHeld = (id: number) => member.roles.some((role) => role.id === id);
  const among: Partial<Record<string, number[]>> = {
    give: alongside.filter((id) => !isHeld(id)),
    take: alongside.filter(isHeld),
  };
  const ask = (does: keyof typeof kinds) =>
    among[does]?.length !== 0 && (
      <button
        type="button"
        onClick={() => {
          asked.value = does;
        }}
      >
        {kinds[does].verb}…
      </button>
    );
  return (
    <section class="sheet card" aria-label={name}>
      <header>
        <div>
          <h2 class="name">{name}</h2>
          <p class="small soft">
            {member.userId} ·{' '}
            <a href={`https://www.roblox.com/users/${member.userId}/profile`} target="_blank" rel="noreferrer">
              profile
            </a>
          </p>
        </div>
        <p class="rank">
          <span class="figure">{highest?.name ?? 'no role'}</span>
          <span class="small soft">rank {member.rank}</span>
        </p>
      </header>
      {suspension !== null && (
        <p>
          <Chip tone="warn" icon="paused">
            {suspension.kind === 'temporary' ? holdName(suspension, alongside) : 'suspended'}
          </Chip>{' '}
          {suspension.endsAt === null ? (
            'until it is lifted'
          ) : (
            <>
              ends <Time at={suspension.endsAt} />
            </>
          )}
          {suspension.reason !== null && <span class="soft name"> · {suspension.reason}</span>}
        </p>
      )}
      <ul class="tags" aria-label="Roles">
        {member.roles.toReversed().map((role) => (
          <li key={role.id} class="tag" title={`role ${role.id}`}>
            {role.name} <span class="soft">{role.rank}</span>
          </li>
        ))}
      </ul>
      {mayChange.value && (
        <div class="row">
          {suspension === null ? (
            <>
              {ask('promote')}
              {ask('demote')}
              {ask('set')}
              {ask('suspend')}
            </>
          ) : (
            <button
              type="button"
              onClick={() => {
                asked.value = suspension;
              }}
            >
              {suspension.kind === 'temporary' ? 'End' : 'Lift'} the {holdName(suspension, alongside)}…
            </button>
          )}
          {suspension?.kind !== 'suspension' && ask('give')}
          {suspension?.kind !== 'suspension' && ask('take')}
        </div>
      )}
      {changes.length > 0 && (
        <>
          <Table
            caption="The last changes, newest first"
            columns={['Last changes', { title: 'By', class: 'roomy' }, 'State']}
          >
            {changes.map((change) => (
              <tr key={change.id}>
                <th scope="row">
                  <What change={change} />
                </th>
                <td class="roomy name">{change.who}</td>
                <td>
                  <ChangeState change={change} />
                  <p class="small soft">
                    <Time at={change.requestedAt} />
                  </p>
                </td>
              </tr>
            ))}
          </Table>
          <p>
            <a href={addressOf('changes', { user: `${member.userId}` })}>
              All changes of {memberName({ rankeeId: member.userId, rankeeName: name })}
            </a>
          </p>
        </>
      )}
      {typeof asked.value === 'object' && <Lift hold={asked.value} onClose={close} />}
      {typeof asked.value === 'string' && (
        <RankDialog {...{ member, name }} does={asked.value} among={among[asked.value]} onClose={close} />
      )}
    </section>
  );
}
