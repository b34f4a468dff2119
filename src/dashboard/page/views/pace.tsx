import { useSignal } from '@preact/signals';
import { budget, status, useLive } from '../live.ts';
import { Icon } from '../parts/icon.tsx';
import { Time } from '../parts/time.tsx';
import { LiveView } from './view.tsx';

const operations: Record<string, string> = {
  group: 'Reading the group',
  roles: 'Reading roles',
  role: 'Reading one role',
  memberships: 'Reading members',
  assign: 'Giving roles',
  unassign: 'Taking roles',
  introspect: 'Checking the Roblox key',
  publicRoles: 'Reading the public role list',
  user: 'Reading users',
  userNames: 'Looking up user names',
  places: 'Reading the places of an experience',
};

/** Shows how many calls to Roblox rankd can still make, and recent problems. */
export function Pace() {
  return (
    <>
      <LiveView title="Pace" live={budget} lead={() => 'the calls to Roblox that rankd can still make this minute'}>
        {({ budget: bars, callsWaiting, requestsInFlight }) => (
          <section class="sheet" aria-label="Pace">
            <dl class="facts figures">
              <Figure name="Requests in flight" value={requestsInFlight} />
              <Figure name="Waiting calls" value={callsWaiting} />
            </dl>
            {bars.length === 0 ? (
              <p class="unlimited soft">Not limited: this group is simulated, and no call goes to Roblox.</p>
            ) : (
              <ul class="bars">
                {bars.map(({ operation, left, limit, waiting }) => (
                  <li key={operation}>
                    <span>{operations[operation] ?? operation}</span>
                    <span class="soft">
                      <span class="figure">{left}</span> of {limit}
                    </span>
                    <meter
                      min={0}
                      max={limit}
                      low={limit * 0.1}
                      high={limit * 0.25}
                      optimum={limit}
                      value={left}
                      aria-label={`${operations[operation] ?? operation}: ${left} of ${limit} left`}
                    />
                    <span class="small soft">
                      {waiting === 0
                        ? 'no call is waiting'
                        : waiting === 1
                          ? '1 call is waiting'
                          : `${waiting} calls are waiting`}
                    </span>
                  </li>
                ))}
              </ul>
            )}
          </section>
        )}
      </LiveView>
      <Problems />
    </>
  );
}

function Figure({ name, value }: { name: string; value: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="figure">{value}</dd>
    </div>
  );
}

function Problems() {
  const { data } = useLive(status);
  const isAll = useSignal(false);
  if (data === undefined) return null;
  const shown = isAll.value ? data.problems : data.problems.slice(0, 8);
  return (
    <>
      <h2>Warnings and errors in the log</h2>
      <section class="sheet" aria-label="Warnings and errors">
        {shown.length === 0 ? (
          <p class="unlimited soft">
            <Icon name="yes" /> None since the daemon started.
          </p>
        ) : (
          <ul class="problems">
            {shown.map(({ at, message }) => (
              <li key={at + message}>
                <span class="soft">
                  <Time at={at} />
                </span>
                <span>{message}</span>
              </li>
            ))}
          </ul>
        )}
      </section>
      {shown.length < data.problems.length && (
        <div class="row">
          <button
            type="button"
            onClick={() => {
              isAll.value = true;
            }}
          >
            All {data.problems.length}
          </button>
        </div>
      )}
    </>
  );
}
