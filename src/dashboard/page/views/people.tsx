import { useSignal } from '@preact/signals';
import { send } from '../api.ts';
import type { Person } from '../documents.ts';
import { people, status, useLive } from '../live.ts';
import { Confirm } from '../parts/dialog.tsx';
import { mayChange, TextField, textOf } from '../parts/form.tsx';
import { Problem } from '../parts/notice.tsx';
import { Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { addressOf } from '../route.ts';

/** Shows the Discord users who are linked to a Roblox user, if Discord is configured. */
export function People() {
  const { data } = useLive(status);
  return data?.discord ? <Linked /> : null;
}

function Linked() {
  const { data, error } = useLive(people);
  const asked = useSignal<Person | 'new' | undefined>(undefined);
  const act = (path: string, fields: (values: FormData) => object) => async (values: FormData, once: string) => {
    await send(path, fields(values), once);
    people.invalidate();
  };
  const close = () => {
    asked.value = undefined;
  };
  return (
    <>
      <div class="title">
        <h2>Linked people on Discord</h2>
        {mayChange.value && (
          <div class="actions">
            <button
              type="button"
              onClick={() => {
                asked.value = 'new';
              }}
            >
              Link a person…
            </button>
          </div>
        )}
      </div>
      {error !== undefined && <Problem error={error} />}
      {data !== undefined && (
        <section class="sheet" aria-label="Linked people">
          {data.length === 0 ? (
            <p class="unlimited soft">
              No one is linked yet. Link people here: /link on Discord shows each person their Discord user ID.
            </p>
          ) : (
            <Table
              caption="Linked people"
              columns={['Roblox user', 'Discord user', { title: 'Linked', class: 'roomy' }, { spoken: 'Actions' }]}
            >
              {data.map((person) => (
                <tr key={person.discordId}>
                  <th scope="row">
                    <a class="quiet name strong" href={addressOf('rank', { user: `${person.userId}` })}>
                      {person.userName ?? person.userId}
                    </a>
                  </th>
                  <td class="name small">{person.discordId}</td>
                  <td class="roomy soft">{person.linkedAt !== null && <Time at={person.linkedAt} />}</td>
                  <td class="end">
                    {mayChange.value && (
                      <button
                        type="button"
                        class="small"
                        onClick={() => {
                          asked.value = person;
                        }}
                      >
                        Unlink…<span class="unseen"> {person.discordId}</span>
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </section>
      )}
      {asked.value === 'new' && (
        <Confirm
          title="Link a person"
          lead="Their commands on Discord will count as this Roblox user’s."
          verb="Link"
          act={act('people/link', (values) => ({ discord: textOf(values, 'discord'), user: textOf(values, 'user') }))}
          onClose={close}
        >
          <TextField name="discord" label="Discord user ID (Copy User ID)" />
          <TextField name="user" label="Roblox user: user name, id or profile address" />
        </Confirm>
      )}
      {asked.value !== undefined && asked.value !== 'new' && (
        <Confirm
          title={`Unlink ${asked.value.userName ?? asked.value.userId}?`}
          lead="Their commands on Discord will no longer count as this Roblox user’s. If ranker_check is not off, or self_rank is deny, rankd refuses these commands."
          verb="Unlink"
          act={act('people/unlink', () => ({ discord: (asked.value as Person).discordId }))}
          onClose={close}
        />
      )}
    </>
  );
}
