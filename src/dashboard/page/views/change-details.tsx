import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { type ApiError, read } from '../api.ts';
import type { Change, DetailedChange } from '../documents.ts';
import { isSimulationLeftover } from '../live.ts';
import { holdWords, roleName } from '../parts/change-words.tsx';
import { mayChange } from '../parts/form.tsx';
import { Icon } from '../parts/icon.tsx';
import { Problem } from '../parts/notice.tsx';
import { exactTime, lengthInWords } from '../parts/time.tsx';
import { addressOf } from '../route.ts';

export function Details({ change, onUndo }: { change: Change; onUndo: (query: string) => void }) {
  const more = useSignal<DetailedChange | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  useEffect(() => {
    read<{ change: DetailedChange }>(`change?id=${encodeURIComponent(change.id)}`).then(
      (answer) => {
        more.value = answer.change;
      },
      (failed) => {
        error.value = failed;
      },
    );
  }, [change.id, change.state]);
  const { undoOf, undoId, oldRankName } = more.value ?? {};
  return (
    <>
      <dl class="details">
        <Fact name="Outcome" isFullWidth>
          {change.message || 'none yet'}
        </Fact>
        {change.reason !== null && (
          <Fact name="Reason" isFullWidth>
            {change.reason}
          </Fact>
        )}
        <Fact name="Roles before">
          <Roles change={change} ids={change.rolesBefore} />
        </Fact>
        <Fact name="Roles after">
          {change.rolesAfter === null ? 'not known yet' : <Roles change={change} ids={change.rolesAfter} />}
        </Fact>
        <Fact name="Requested">
          {exactTime(change.requestedAt)}
          {change.finishedAt !== null && (
            <span class="soft"> (took {duration(change.requestedAt, change.finishedAt)})</span>
          )}
        </Fact>
        <Fact name="By">{change.who}</Fact>
        <Fact name="Through">
          {change.via}
          {change.placeId !== null && <span class="soft"> from place {change.placeId}</span>}
        </Fact>
        {change.simulated && <Fact name="Group">simulated: nothing was changed on Roblox</Fact>}
        {change.hold !== null && <Fact name="Effect">{holdWords(change.hold, change.requestedAt)}</Fact>}
        {change.command !== null && <Fact name="Command">{change.command}</Fact>}
        {change.code !== null && <Fact name="Code">{change.code}</Fact>}
        {oldRankName != null && <Fact name="Earlier rank, as the game sent it">{oldRankName}</Fact>}
        {undoOf != null && <Fact name="Undoes">{undoOf}</Fact>}
        {undoId != null && (
          <Fact name="Part of undo">
            <a href={addressOf('changes', { undo: undoId })}>{undoId}</a>
          </Fact>
        )}
        <Fact name="Change">{change.id}</Fact>
      </dl>
      {error.value !== undefined && <Problem error={error.value} />}
      <div class="row">
        {mayChange.value && change.state === 'applied' && !change.dryRun && !isSimulationLeftover(change) && (
          <button type="button" onClick={() => onUndo(new URLSearchParams({ change: change.id }).toString())}>
            <Icon name="back" /> Undo…
          </button>
        )}
        {mayChange.value && undoId != null && !isSimulationLeftover(change) && (
          <button type="button" onClick={() => onUndo(new URLSearchParams({ undo: undoId }).toString())}>
            <Icon name="back" /> Reverse the whole undo…
          </button>
        )}
        <a class="button" href={addressOf('rank', { user: `${change.rankeeId}` })}>
          Open the member
        </a>
        <a class="button" href={addressOf('changes', { user: `${change.rankeeId}` })}>
          All changes of this member
        </a>
      </div>
    </>
  );
}

function Fact({
  name,
  isFullWidth = false,
  children,
}: {
  name: string;
  isFullWidth?: boolean;
  children: ComponentChildren;
}) {
  return (
    <div class={isFullWidth ? 'whole' : ''}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Roles({ change, ids }: { change: Change; ids: number[] }) {
  if (ids.length === 0) return <span class="soft">none</span>;
  return (
    <ul class="tags">
      {ids.map((id) => (
        <li key={id} class="tag" title={`role ${id}`}>
          {roleName(change, id)}
        </li>
      ))}
    </ul>
  );
}

function duration(from: string, to: string): string {
  const ms = Date.parse(to) - Date.parse(from);
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : lengthInWords(ms);
}
