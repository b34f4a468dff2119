import { useSignal } from '@preact/signals';
import type { Key } from '../documents.ts';
import { isSimulationLeftover, keyPages, keys } from '../live.ts';
import { type Appearance, Chip } from '../parts/chip.tsx';
import { mayChange } from '../parts/form.tsx';
import { Icon } from '../parts/icon.tsx';
import { Shell } from '../parts/notice.tsx';
import { Empty, More, shownColumns, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { addressOf } from '../route.ts';
import { KeyDetails, type Minted, MintedSecret, NewKey } from './key-actions.tsx';
import { People } from './people.tsx';
import { counted, LiveView, NewButton } from './view.tsx';

const states: Record<Key['state'], Appearance> = {
  active: { tone: 'good', icon: 'yes' },
  rotating: { tone: 'open', icon: 'waiting' },
  paused: { tone: 'warn', icon: 'paused' },
  expired: { tone: 'quiet', icon: 'no' },
  revoked: { tone: 'quiet', icon: 'no' },
};

export function Keys() {
  const isNew = useSignal(false);
  const minted = useSignal<Minted | undefined>(undefined);
  const mint = (made: Minted) => {
    if (made.secret !== null) minted.value = made;
    keys.invalidate();
  };
  const action = mayChange.value && <NewButton opens={isNew}>New key…</NewButton>;
  return (
    <LiveView
      title="Keys"
      live={keys}
      lead={({ keys: list, next }) => count(list.length, next === null)}
      action={action}
    >
      {({ keys: list, next, pages }) => (
        <>
          <section class="sheet" aria-label="Keys">
            {list.length === 0 ? <NoKeys /> : <KeysTable list={list} onMinted={mint} />}
          </section>
          {next !== null && (
            <More
              isLoading={pages < keyPages.value && keys.error.value === undefined}
              onClick={() => {
                keyPages.value = pages + 1;
                keys.invalidate();
              }}
            >
              More keys
            </More>
          )}
          <People />
          {isNew.value && (
            <NewKey
              onMinted={mint}
              onClose={() => {
                isNew.value = false;
              }}
            />
          )}
          {minted.value !== undefined && (
            <MintedSecret
              {...minted.value}
              onClose={() => {
                minted.value = undefined;
              }}
            />
          )}
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
    <Empty icon="keys" title="No keys yet">
      <p>
        A game needs a key to use rankd, and each key lists the places that may use it. The secret of a key is shown
        only once, when you create it.
      </p>
      <p>In a shell, run</p>
      <Shell line="rankd key create my-game" />
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
  { spoken: 'Details' },
];

function KeysTable({ list, onMinted }: { list: Key[]; onMinted: (minted: Minted) => void }) {
  const open = useSignal<string | undefined>(undefined);
  return (
    <Table caption="Keys, oldest first" columns={columns}>
      {list.map((key) => [
        <tr key={key.id} class={`record${open.value === key.id ? ' is-open' : ''}`}>
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
            {key.expiresAt !== null && key.state !== 'revoked' && (
              <p class="small soft">
                {key.state !== 'expired' && 'expires '}
                <Time at={key.expiresAt} />
              </p>
            )}
          </td>
          <td class="wide">
            <ul class="tags">
              {describePermissions(key).map((text) => (
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
          <td class="end">
            <button
              type="button"
              class="opener"
              aria-expanded={open.value === key.id}
              aria-label={`Key ${key.name}`}
              onClick={() => {
                open.value = open.value === key.id ? undefined : key.id;
              }}
            >
              <Icon name="opener" />
            </button>
          </td>
        </tr>,
        open.value === key.id && (
          <tr key={`${key.id} more`} class="more">
            <td colSpan={shownColumns(columns)}>
              <KeyDetails of={key} onMinted={onMinted} />
            </td>
          </tr>
        ),
      ])}
    </Table>
  );
}

function KeyState({ of: key }: { of: Key }) {
  if (key.simulated && key.state === 'active' && isSimulationLeftover(key))
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

function describePermissions(key: Key): string[] {
  const { scopes, minRank, maxRank, direction, ratePerMinute } = key;
  const ranks =
    minRank === null ? (maxRank === null ? [] : [`up to rank ${maxRank}`]) : [`ranks ${minRank} to ${maxRank ?? 255}`];
  return [
    ...(key.mode === 'test' ? ['test: changes nothing'] : []),
    ...scopes,
    ...ranks,
    ...(direction === null ? [] : [`${direction} only`]),
    ...(key.selfRank === null ? [] : ['no self-rank']),
    ...(key.system ? ['no player needed'] : []),
    ...(key.forDiscord ? ['for Discord'] : []),
    ...(key.privileged ? ['privileged roles'] : []),
    ...(ratePerMinute === null ? [] : [`${ratePerMinute} a minute`]),
    ...(key.simulated ? ['simulated group'] : []),
    ...(key.declaredIn === null ? [] : [`declared in ${key.declaredIn}`]),
  ];
}

const shownPlaces = 3;

function Places({ of: { anyPlace, forDiscord, whitelist } }: { of: Key }) {
  if (forDiscord) return <>Discord</>;
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
                , expires <Time at={expiresAt} />
              </>
            )}
          </p>
        </li>
      ))}
    </ul>
  );
}
