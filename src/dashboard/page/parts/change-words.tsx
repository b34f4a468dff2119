import type { Change } from '../documents.ts';
import { isSimulationLeftover } from '../live.ts';
import { type Appearance, Chip } from './chip.tsx';
import { Icon } from './icon.tsx';
import { lengthInWords } from './time.tsx';

const states: Record<Change['state'], Appearance> = {
  pending: { tone: 'open', icon: 'waiting' },
  applied: { tone: 'good', icon: 'yes' },
  refused: { tone: 'warn', icon: 'barred' },
  failed: { tone: 'bad', icon: 'no' },
  unknown: { tone: 'odd', icon: 'asked' },
};

export const changeStates = Object.keys(states) as Change['state'][];

export function ChangeState({ change }: { change: Pick<Change, 'state' | 'dryRun' | 'simulated'> }) {
  const { tone, icon } = states[change.state];
  return (
    <span class="tags">
      <Chip tone={isSimulationLeftover(change) ? 'quiet' : tone} icon={icon}>
        {change.state}
      </Chip>
      {change.dryRun && <span class="tag">test key</span>}
      {change.simulated && <span class="tag">simulated</span>}
    </span>
  );
}

export function memberName({
  rankeeName,
  rankeeId,
  userName = null,
}: Pick<Change, 'rankeeName' | 'rankeeId'> & { userName?: string | null }): string {
  return shortened(rankeeName || userName || String(rankeeId));
}

const longestName = 60;

/** Shortens a member's name, because games can send names of any length. */
export function shortened(name: string): string {
  return name.length <= longestName ? name : `${name.slice(0, longestName).toWellFormed()}…`;
}

export function Member(member: Pick<Change, 'rankeeName' | 'rankeeId'> & { userName?: string | null }) {
  const name = memberName(member);
  return (
    <span class="name">
      <span class="strong">{name}</span>
      {name !== String(member.rankeeId) && <span class="soft small"> {member.rankeeId}</span>}
    </span>
  );
}

export function roleName({ roles }: Pick<Change, 'roles'>, id: number): string {
  return roles.find((role) => role.id === id)?.name ?? `role ${id}`;
}

const slackMs = 5_000;

/** Describes the hold behind a change, which would otherwise look like an ordinary promotion or demotion. */
export function holdWords({ does, kind, endsAt }: NonNullable<Change['hold']>, requestedAt: string): string {
  // The end is computed a moment before the change is recorded.
  const length = endsAt === null ? '' : ` for ${lengthInWords(Date.parse(endsAt) - Date.parse(requestedAt) + slackMs)}`;
  const isTemporary = kind === 'temporary';
  const words = {
    begin: isTemporary ? `temporary${length}` : `suspended${length}`,
    renew: 'rejoined the group: still in force',
    end: 'time is up: previous roles restored',
    lift: `${isTemporary ? 'ended' : 'lifted'} early: previous roles restored`,
    override: 'ends the suspension',
    undo: 'undoes a change to a suspension, temporary rank or temporary role',
  };
  return words[does];
}

/**
 * Shows an arrow from the old role to the new one. For a suspension, shows a description instead; for an extra role,
 * shows only that role.
 */
export function Move({ change }: { change: Change }) {
  if (change.hold !== null && change.hold.does !== 'override' && change.hold.kind !== 'temporary')
    return <HoldMove change={change} hold={change.hold} />;
  const { kind, roleId, oldRoleId, newRankId, roles } = change;
  if (kind !== null && roleId !== null)
    return <span class="name">{`${kind === 'role_added' ? '+' : '−'} ${roleName(change, roleId)}`}</span>;
  if (roleId === null) return <span class="soft">{newRankId === null ? 'unknown' : `to rank ${newRankId}`}</span>;
  if (oldRoleId === null || oldRoleId === roleId) return <span class="name">{roleName(change, roleId)}</span>;
  const rankOf = (id: number) => roles.find((role) => role.id === id)?.rank ?? 0;
  const step = Math.sign(rankOf(roleId) - rankOf(oldRoleId));
  const [way, icon, words] = (
    [
      ['down', 'down', 'down to'],
      ['level', 'level', 'to'],
      ['up', 'up', 'up to'],
    ] as const
  )[step + 1] ?? ['level', 'level', 'to'];
  return (
    <span class="move">
      <span class="name soft">{roleName(change, oldRoleId)}</span>
      <span class={way}>
        <Icon name={icon} />
        <span class="unseen">{words}</span>
      </span>
      <span class="name">{roleName(change, roleId)}</span>
    </span>
  );
}

function HoldMove({ change, hold }: { change: Change; hold: NonNullable<Change['hold']> }) {
  const role = change.roleId === null ? undefined : roleName(change, change.roleId);
  return (
    <>
      <span class="move">
        <span class={hold.does === 'begin' || hold.does === 'renew' ? 'down' : 'up'}>
          <Icon name={hold.does === 'begin' || hold.does === 'renew' ? 'paused' : 'back'} />
        </span>
        <span>{holdWords(hold, change.requestedAt)}</span>
      </span>
      {role !== undefined && (
        <p class="small soft name">{hold.does === 'begin' ? `has the role ${role} in the meantime` : role}</p>
      )}
    </>
  );
}
