import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { Change } from '../documents.ts';
import { isSimulationLeftover, useLive } from '../live.ts';
import { ChangeState, holdWords, Member, Move, memberName, shortened } from '../parts/change-words.tsx';
import { mayChange } from '../parts/form.tsx';
import { Icon } from '../parts/icon.tsx';
import { Problem, Shell } from '../parts/notice.tsx';
import { type Column, Empty, More, shownColumns, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { addressOf, route } from '../route.ts';
import { Details } from './change-details.tsx';
import { ChangeList } from './change-list.ts';
import { activeFilters, Search } from './search.tsx';
import { UndoDialog } from './undo.tsx';

export function Changes() {
  const active = activeFilters(route.value.params);
  const query = new URLSearchParams(active).toString();
  const list = useMemo(() => new ChangeList(query), [query]);
  const { error } = useLive(list.live);
  const undoOf = useSignal<string | undefined>(undefined);
  const listed = list.listed.value;
  const isAboutField = error?.details.field !== undefined;
  return (
    <>
      <div class="title">
        <h1>Changes</h1>
        {listed !== undefined && <Count shown={listed.changes.length} isAll={listed.next === null} />}
        {mayChange.value && mayUndoAll(active) && listed?.changes.some((change) => !isSimulationLeftover(change)) && (
          <div class="actions">
            <button
              type="button"
              onClick={() => {
                undoOf.value = query;
              }}
            >
              <Icon name="back" /> Undo all of these…
            </button>
          </div>
        )}
      </div>
      <Search active={active} error={isAboutField ? error : undefined} />
      {error !== undefined && !isAboutField && <Problem error={error} />}
      {listed !== undefined && !isAboutField && (
        <section class="sheet" aria-label="Rank changes" aria-busy={list.isLoading.value}>
          {listed.changes.length > 0 && (
            <ChangesTable
              changes={listed.changes}
              fresh={listed.fresh}
              onUndo={(ids) => {
                undoOf.value = ids;
              }}
            />
          )}
          {listed.changes.length === 0 && listed.next === null && <NoChanges isSearch={query !== ''} />}
          {list.isLoading.value && listed.changes.length === 0 && <p class="empty soft">Searching older changes…</p>}
        </section>
      )}
      {listed !== undefined && listed.next !== null && listed.changes.length > 0 && !isAboutField && (
        <More isLoading={list.isLoading.value} onClick={() => void list.more()}>
          Older changes
        </More>
      )}
      {undoOf.value !== undefined && (
        <UndoDialog
          query={undoOf.value}
          onClose={() => {
            undoOf.value = undefined;
          }}
        />
      )}
    </>
  );
}

function Count({ shown, isAll }: { shown: number; isAll: boolean }) {
  return <p class="soft">{isAll ? `${shown} in total` : `the newest ${shown}`}</p>;
}

/** True if the filters are narrow enough to allow undoing all results. */
function mayUndoAll(active: Record<string, string>): boolean {
  if (active['state'] !== undefined && active['state'] !== 'applied') return false;
  if (active['user'] !== undefined) return /^\d+$/.test(active['user']);
  if (active['undo'] !== undefined) return true;
  const isNarrow = ['key', 'place', 'ranker', 'by'].some((name) => active[name] !== undefined);
  return isNarrow && active['since'] !== undefined;
}

function NoChanges({ isSearch }: { isSearch: boolean }) {
  if (isSearch)
    return (
      <Empty icon="changes" title="No changes match">
        <p>
          Remove a filter, or <a href={addressOf('changes')}>show all changes</a>.
        </p>
      </Empty>
    );
  return (
    <Empty icon="changes" title="No rank changes yet">
      <p>
        Rank changes appear here as soon as one is requested. <a href={addressOf('keys')}>Create a key</a> for your
        game, or <a href={addressOf('rank')}>change a rank</a> yourself. In a shell, run
      </p>
      <Shell line="rankd key create my-game" />
      <Shell line="rankd rank set USER RANK" />
    </Empty>
  );
}

interface TableProps {
  changes: Change[];
  fresh: ReadonlySet<string>;
  onUndo: (query: string) => void;
}

const columns: Array<string | Column> = [
  { title: 'When', class: 'roomy' },
  'Member',
  { title: 'Change', class: 'roomy' },
  { title: 'By', class: 'wide' },
  { title: 'Through', class: 'wide' },
  'State',
  { spoken: 'Details' },
];

function ChangesTable({ changes, fresh, onUndo }: TableProps) {
  const open = useSignal<string | undefined>(undefined);
  return (
    <Table caption="Rank changes, newest first" columns={columns} class="changes">
      {changes.map((change) => {
        const isOpen = open.value === change.id;
        return [
          <tr key={change.id} class={`record${isOpen ? ' is-open' : ''}${fresh.has(change.id) ? ' fresh' : ''}`}>
            <td class="roomy nowrap soft">
              <Time at={change.requestedAt} />
            </td>
            <th scope="row">
              <a class="quiet" href={addressOf('changes', { user: `${change.rankeeId}` })}>
                <Member {...change} />
              </a>
              <div class="tight">
                <What change={change} />
                <p class="small soft name">
                  {shortened(change.who)} · {change.via}
                </p>
              </div>
            </th>
            <td class="roomy">
              <What change={change} />
            </td>
            <td class="wide by">
              <By change={change} />
            </td>
            <td class="wide">
              <ChangeOrigin change={change} />
            </td>
            <td>
              <ChangeState change={change} />
              <p class="tight small soft">
                <Time at={change.requestedAt} />
              </p>
            </td>
            <td class="end">
              <button
                type="button"
                class="opener"
                aria-expanded={isOpen}
                aria-label={`Details of the change to ${memberName(change)}`}
                onClick={() => {
                  open.value = isOpen ? undefined : change.id;
                }}
              >
                <Icon name="opener" />
              </button>
            </td>
          </tr>,
          isOpen && (
            <tr key={`${change.id} more`} class="more">
              <td colSpan={shownColumns(columns)}>
                <Details change={change} onUndo={onUndo} />
              </td>
            </tr>
          ),
        ];
      })}
    </Table>
  );
}

export function What({ change }: { change: Change }) {
  const words = change.state === 'applied' ? change.reason : change.message;
  return (
    <>
      <Move change={change} />
      {change.hold !== null && (change.hold.does === 'override' || change.hold.kind === 'temporary') && (
        <p class="small">{holdWords(change.hold, change.requestedAt)}</p>
      )}
      {words !== null && words !== '' && <p class="small soft name">{words}</p>}
    </>
  );
}

function By({ change }: { change: Change }) {
  if (change.keyId === null) return <span class="name">{change.who}</span>;
  if (change.rankerId === 0) return <span class="name soft">{shortened(change.who)}</span>;
  return (
    <a class="quiet name" href={addressOf('changes', { ranker: `${change.rankerId}` })}>
      {shortened(change.rankerName) || change.rankerId}
    </a>
  );
}

function ChangeOrigin({ change }: { change: Change }) {
  if (change.keyId === null) return <span class="soft">{change.via}</span>;
  return (
    <>
      <a class="quiet name" href={addressOf('changes', { key: change.keyId })}>
        {change.via}
      </a>
      {change.placeId !== null && <span class="soft small"> {change.placeId}</span>}
    </>
  );
}
