import { computed, signal } from '@preact/signals';
import { isLost, logOut, respondedAt, session } from '../api.ts';
import type { Status } from '../documents.ts';
import { hasStopped, status, useLive } from '../live.ts';
import { addressOf } from '../route.ts';
import { Chip } from './chip.tsx';
import { Hint, Notice, Problem } from './notice.tsx';
import { locale, Time } from './time.tsx';

const silentAfterMs = 5_000;
const hourMs = 3_600_000;

const tick = signal(Date.now());
setInterval(() => {
  if (isLost.peek()) tick.value = Date.now();
}, 1_000);

/** True once the daemon has been silent for five seconds. The page then turns gray, because it can be out of date. */
export const isDaemonSilent = computed(
  () => isLost.value && Math.max(tick.value, Date.now()) - respondedAt.value >= silentAfterMs,
);

export function Head() {
  const { data, error } = useLive(status);
  return (
    <header class="head">
      <div class="group">
        <strong>
          {data === undefined ? 'rankd' : (data.groupName ?? (data.simulated ? 'Simulated group' : 'Group'))}
        </strong>
        <div class="row small soft">
          {data !== undefined && data.groupId !== null && <span>Group {data.groupId}</span>}
          {data?.simulated === true && (
            <Chip tone="bad" icon="warning">
              simulated
            </Chip>
          )}
          <span aria-live="polite">
            <DaemonState data={data} />
          </span>
        </div>
      </div>
      {data !== undefined && (
        <dl class="facts">
          <Facts data={data} />
        </dl>
      )}
      <Operator />
      {data !== undefined && <Troubles data={data} />}
      {error !== undefined && !isLost.value && <Problem error={error} />}
    </header>
  );
}

function Operator() {
  const who = session.value;

  return (
    <p class="operator">
      <span class="small soft name">{who?.operator}</span>
      {who?.viewOnly && (
        <Chip tone="open" icon="eye">
          view only
        </Chip>
      )}
      <button type="button" class="plain small" onClick={() => void logOut()}>
        Log out
      </button>
    </p>
  );
}

function DaemonState({ data }: { data: Status | undefined }) {
  if (isLost.value) {
    if (isDaemonSilent.value)
      return (
        <Chip
          tone="bad"
          icon="no"
        >{`no response since ${new Date(respondedAt.value).toLocaleTimeString(locale)}`}</Chip>
      );
    return (
      <Chip tone="bad" icon="no">
        {hasStopped.value ? 'stopped' : 'connection lost'}
      </Chip>
    );
  }
  if (data === undefined) return <>…</>;
  if (data.state === 'stopping')
    return (
      <Chip tone="warn" icon="paused">
        stopping
      </Chip>
    );
  return (
    <Chip tone="good" icon="yes">
      running
    </Chip>
  );
}

function Facts({ data }: { data: Status }) {
  const { credential, changesToday, openChanges, problems } = data;
  const lately = problems.filter(({ at }) => Date.now() - Date.parse(at) < hourMs).length;
  return (
    <>
      <div>
        <dt>Roblox key</dt>
        <dd>
          {credential.isAccepted ? 'accepted' : 'not accepted'}
          {credential.actingUserId !== null && <span class="soft">, acts as {credential.actingUserId}</span>}
          {credential.expiresAt !== null && (
            <span class="soft">
              , {Date.parse(credential.expiresAt) < Date.now() ? 'expired' : 'expires'}{' '}
              <Time at={credential.expiresAt} />
            </span>
          )}
        </dd>
      </div>
      {changesToday !== null && (
        <div>
          <dt>Today</dt>
          <dd>
            {changesToday.applied} changed, {changesToday.refused + changesToday.failed} not
            {openChanges !== null && openChanges > 0 && <span class="soft">, {openChanges} open</span>}
          </dd>
        </div>
      )}
      <div>
        <dt>Problems in the last hour</dt>
        <dd>{lately === 0 ? 'none' : <a href={addressOf('pace')}>{lately}</a>}</dd>
      </div>
    </>
  );
}

function Troubles({ data }: { data: Status }) {
  const {
    credential,
    platformTrust,
    storeProblem,
    acceptsKeys,
    stuckSuspensions,
    needRestart,
    workspaceActive,
    misfits,
  } = data;
  const stuck = stuckSuspensions ?? [];
  const troubles: Array<[isOn: boolean, words: string]> = [
    [
      workspaceActive === false,
      'The workspace is suspended, so no game can do anything. To end the suspension: `rankd workspace resume`',
    ],
    [storeProblem !== null, `The database can’t be used: ${storeProblem}`],
    [!credential.isAccepted, `${credential.problem ?? 'Roblox does not accept the Roblox key.'} See \`rankd doctor\`.`],
    [platformTrust.stop !== null, `No ranks are changed until you run \`rankd reload\`: ${platformTrust.stop}`],
    [
      !platformTrust.believesAnswers,
      'A later read contradicted a response from Roblox. rankd confirms every change with a read until a later read agrees.',
    ],
    [
      acceptsKeys === false,
      'No game key is accepted, so no game can do anything. To create one: `rankd key create my-game`',
    ],
    [stuck.length > 0, `The previous roles can’t be given back to ${stuck.join(', ')}. See Suspensions.`],
    ...misfits.map(({ message, fix }): [boolean, string] => [true, `${message} Fix: ${fix}`]),
    [needRestart.length > 0, `Restart rankd to apply these changed settings: ${needRestart.join(', ')}.`],
  ];
  const now = troubles.filter(([isOn]) => isOn);
  if (now.length === 0) return null;
  return (
    <div class="troubles">
      {now.map(([, words]) => (
        <Notice key={words}>
          <Hint text={words} />
        </Notice>
      ))}
    </div>
  );
}
