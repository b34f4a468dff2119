import { signal, useSignal } from '@preact/signals';
import { read, send } from '../api.ts';
import type { Key, Keys as KeysPage } from '../documents.ts';
import { isLeftFromSimulation, Live } from '../live.ts';
import { Chip, type Tone } from '../parts/chip.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Empty } from '../parts/empty.tsx';
import type { IconName } from '../parts/icon.tsx';
import { More } from '../parts/more.tsx';
import { Shell } from '../parts/notice.tsx';
import { Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { addressOf } from '../route.ts';
import { counted, LiveView } from './view.tsx';

const states: Record<Key['state'], { tone: Tone; icon: IconName }> = {
  active: { tone: 'good', icon: 'yes' },
  rotating: { tone: 'open', icon: 'waiting' },
  paused: { tone: 'warn', icon: 'paused' },
  expired: { tone: 'quiet', icon: 'no' },
  revoked: { tone: 'quiet', icon: 'no' },
};

/** The number of key pages shown. News reloads all of them. */
const wanted = signal(1);

const keys = new Live('keys', async () => {
  const shown = { keys: [] as Key[], next: null as string | null, pages: 0 };
  do {
    const page = await read<KeysPage>(shown.next === null ? 'keys' : `keys?after=${shown.next}`);
    shown.keys.push(...page.keys);
    shown.next = page.next;
    shown.pages++;
  } while (shown.next !== null && shown.pages < wanted.peek());
  return shown;
});

/** The games' keys: permissions, last use, and a switch to pause each. */
export function Keys() {
  const asked = useSignal<Key | undefined>(undefined);
  const close = () => {
    asked.value = undefined;
  };
  return (
    <LiveView title="Keys" live={keys} lead={({ keys: list, next }) => count(list.length, next === null)}>
      {({ keys: list, next, pages }) => (
        <>
          <section class="sheet" aria-label="Keys">
            {list.length === 0 ? (
              <NoKeys />
            ) : (
              <KeysTable
                list={list}
                onAsk={(key) => {
                  asked.value = key;
                }}
              />
            )}
          </section>
          {next !== null && (
            <More
              isLooking={pages < wanted.value && keys.error.value === undefined}
              onClick={() => {
                wanted.value = pages + 1;
                keys.touch();
              }}
            >
              More keys
            </More>
          )}
          {asked.value !== undefined && <Switch asked={asked.value} onClose={close} />}
        </>
      )}
    </LiveView>
  );
}

function count(shown: number, isAll: boolean): string {
  if (!isAll) return `the oldest ${shown}`;
  return shown === 0 ? '' : counted(shown, 'key');
}

function NoKeys() {
  return (
    <Empty icon="keys" title="No key yet">
      <p>
        A game needs a key before it can ask for anything. A key is a secret, so it is made in a shell, and shown there
        once:
      </p>
      <Shell line="rankd key create my-game" />
      <p>Then name the place that may use it:</p>
      <Shell line="rankd whitelist add PLACE --key my-game" />
    </Empty>
  );
}

const columns = [
  'Key',
  'State',
  { title: 'May', class: 'wide' },
  { title: 'Places', class: 'wide' },
  { title: 'Last used', class: 'wide' },
  { title: '24 h', spoken: 'Changes in 24 hours', class: 'number' },
  { spoken: 'Actions' },
];

function KeysTable({ list, onAsk }: { list: Key[]; onAsk: (key: Key) => void }) {
  return (
    <Table caption="Keys, oldest first" columns={columns}>
      {list.map((key) => (
        <tr key={key.id}>
          <th scope="row">
            <a class="quiet name strong" href={addressOf('changes', { key: key.id })}>
              {key.name}
            </a>
            <p class="small soft">{key.id}</p>
            <p class="small narrow">
              <LastUse keys={key} />
            </p>
          </th>
          <td>
            <KeyState of={key} />
            {key.expiresAt !== null && (
              <p class="small soft">
                {key.state === 'expired' ? 'since' : 'expires'} <Time at={key.expiresAt} />
              </p>
            )}
          </td>
          <td class="wide">
            <ul class="tags">
              {mayDo(key).map((text) => (
                <li key={text} class="tag">
                  {text}
                </li>
              ))}
            </ul>
          </td>
          <td class="wide">
            <Places of={key} />
          </td>
          <td class="wide">
            <LastUse keys={key} />
          </td>
          <td class="number strong">{key.changesInDay ?? '…'}</td>
          <td class="number">
            {key.state !== 'revoked' && key.state !== 'expired' && (
              <button type="button" class="small" onClick={() => onAsk(key)}>
                {key.pausedAt === null ? 'Pause' : 'Resume'}
                <span class="unseen"> {key.name}</span>
              </button>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function KeyState({ of: key }: { of: Key }) {
  if (key.simulated && key.state === 'active' && isLeftFromSimulation(key))
    return (
      <>
        <Chip tone="quiet" icon="barred">
          simulated
        </Chip>
        <p class="small soft">
          not accepted here: <Shell line={`rankd key adopt ${key.name}`} />
        </p>
      </>
    );
  return <Chip {...states[key.state]}>{key.state}</Chip>;
}

function mayDo(key: Key): string[] {
  const { scopes, minRank, maxRank, direction, ratePerMinute } = key;
  const ranks =
    minRank === null ? (maxRank === null ? [] : [`up to rank ${maxRank}`]) : [`ranks ${minRank} to ${maxRank ?? 255}`];
  return [
    ...(key.mode === 'test' ? ['test: changes nothing'] : []),
    ...scopes,
    ...ranks,
    ...(direction === null ? [] : [`${direction} only`]),
    ...(key.selfRank === null ? [] : ['not oneself']),
    ...(key.system ? ['without a player'] : []),
    ...(key.privileged ? ['privileged roles'] : []),
    ...(ratePerMinute === null ? [] : [`${ratePerMinute} a minute`]),
    ...(key.simulated ? ['simulated group'] : []),
    ...(key.declaredIn === null ? [] : [`declared in ${key.declaredIn}`]),
  ];
}

const shownPlaces = 3;

function Places({ of: { anyPlace, whitelist } }: { of: Key }) {
  if (anyPlace) return <>any place</>;
  const active = whitelist.filter((entry) => entry.active);
  if (active.length === 0) return <span class="soft">none</span>;
  return (
    <ul>
      {active.slice(0, shownPlaces).map(({ placeId, note }) => (
        <li key={placeId} class="name">
          {placeId}
          {note !== '' && <span class="soft small"> {note}</span>}
        </li>
      ))}
      {active.length > shownPlaces && <li class="soft small">and {active.length - shownPlaces} more</li>}
    </ul>
  );
}

function LastUse({ keys: { secrets } }: { keys: Key }) {
  return (
    <ul>
      {secrets.map(({ masked, lastUsedAt, lastPlaceId, expiresAt }) => (
        <li key={masked}>
          {lastUsedAt === null ? <span class="soft">never</span> : <Time at={lastUsedAt} />}
          {lastPlaceId !== null && <span class="soft small"> from {lastPlaceId}</span>}
          <p class="small soft name">
            {masked}
            {expiresAt !== null && (
              <>
                , good until <Time at={expiresAt} />
              </>
            )}
          </p>
        </li>
      ))}
    </ul>
  );
}

function Switch({ asked, onClose }: { asked: Key; onClose: () => void }) {
  const isPaused = asked.pausedAt !== null;
  const lead = isPaused
    ? 'It can change ranks again, at once.'
    : 'It can change no rank until it is resumed. Until then, rankd refuses its requests.';
  return (
    <Confirm
      title={`${isPaused ? 'Resume' : 'Pause'} ${asked.name}?`}
      lead={lead}
      verb={isPaused ? 'Resume' : 'Pause'}
      act={async () => {
        await send(isPaused ? 'keys/resume' : 'keys/pause', { key: asked.id });
        keys.touch();
      }}
      onClose={onClose}
    />
  );
}
