import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { type ApiError, newKey, send } from '../api.ts';
import type { Change, Member, RankTest } from '../documents.ts';
import { Dialog, Done, OtherProblem } from '../parts/dialog.tsx';
import { FormError, Reason, TextField, textOf } from '../parts/form.tsx';
import { Icon } from '../parts/icon.tsx';
import { Hint, Notice } from '../parts/notice.tsx';
import { RoleField } from '../parts/roles.tsx';

interface Kind {
  verb: string;
  title: (name: string) => string;
  /** The role field's label, if the user must choose a role. */
  role?: string;
  /** The duration field's label and hint, if the change can be temporary. */
  length?: [label: string, hint: string];
}

const optionalLength = 'Duration (empty: permanent)';
export const kinds = {
  promote: { verb: 'Promote', title: (name) => `Promote ${name}?` },
  demote: { verb: 'Demote', title: (name) => `Demote ${name}?` },
  set: {
    verb: 'Set rank',
    title: (name) => `Set the rank of ${name}`,
    role: 'New rank',
    length: [optionalLength, 'such as 12h or 7d; the previous roles are restored afterwards'],
  },
  suspend: {
    verb: 'Suspend',
    title: (name) => `Suspend ${name}?`,
    length: ['Duration', 'such as 30m, 12h or 3d; use ever to suspend until you lift it'],
  },
  give: {
    verb: 'Give role',
    title: (name) => `Give ${name} a role`,
    role: 'Extra role',
    length: [optionalLength, 'such as 12h or 7d; the role is taken away afterwards'],
  },
  take: { verb: 'Take role', title: (name) => `Take a role from ${name}`, role: 'Extra role' },
} satisfies Record<string, Kind>;

const typingMs = 400;

interface RankDialogProps {
  does: keyof typeof kinds;
  member: Member;
  name: string;
  /** The ids of the roles to choose from, instead of the ranks that can be given. */
  among?: readonly number[] | undefined;
  onClose: () => void;
}

/** Shows a dry run's result, asks for confirmation, and then shows the outcome. */
export function RankDialog({ does, member, name, among, onClose }: RankDialogProps) {
  const { verb, title, role, length }: Kind = kinds[does];
  const rank = useSignal<number | undefined>(undefined);
  const duration = useSignal(does === 'suspend' ? '3d' : '');
  const tested = useSignal<RankTest | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  const outcome = useSignal<Change | undefined>(undefined);
  const isBusy = useSignal(false);
  const once = useMemo(newKey, []);
  const isReady = role === undefined || rank.value !== undefined;
  const lastTyped = useRef(duration.value);
  const body = {
    ...{ user: member.userId, does },
    ...(rank.value !== undefined && { rank: rank.value }),
    ...(duration.value !== '' && { for: duration.value }),
  };
  useEffect(() => {
    tested.value = undefined;
    error.value = undefined;
    if (!isReady) return;
    let isGone = false;
    const test = () =>
      send<RankTest>('rank/test', body).then(
        (answer) => {
          if (!isGone) tested.value = answer;
        },
        (failed) => {
          if (!isGone) error.value = failed;
        },
      );
    const timer = setTimeout(test, duration.value === lastTyped.current ? 0 : typingMs);
    lastTyped.current = duration.value;
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [JSON.stringify(body)]);
  const change = async (form: HTMLFormElement) => {
    if (isBusy.value || !isAllowed) return;
    isBusy.value = true;
    error.value = undefined;
    try {
      const from = tested.value?.move?.from;
      const reason = textOf(new FormData(form), 'reason');
      const asked = { ...body, ...(from && { ifRank: from.id }), reason };
      outcome.value = (await send<{ change: Change }>('rank/change', asked, once)).change;
    } catch (failed) {
      error.value = failed as ApiError;
    }
    isBusy.value = false;
  };
  const steps = tested.value?.move?.steps ?? [];
  const isAllowed = steps.length > 0;
  if (outcome.value !== undefined) return <Done change={outcome.value} onClose={onClose} />;
  const footer = (
    <>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <button type="submit" class="main" disabled={!isAllowed || isBusy.value}>
        {isBusy.value ? 'Working…' : verb}
      </button>
    </>
  );
  return (
    <Dialog
      title={title(name)}
      lead="Nothing has been changed yet."
      footer={footer}
      onClose={onClose}
      onSubmit={(form) => void change(form)}
    >
      <FormError.Provider value={error.value}>
        {role !== undefined && (
          <RoleField
            name="rank"
            label={role}
            {...(among && { among })}
            onChange={(id) => {
              rank.value = id === 0 ? undefined : id;
            }}
          />
        )}
        {length !== undefined && (
          <TextField
            name="for"
            label={length[0]}
            hint={length[1]}
            value={duration.value}
            onInput={(text) => {
              duration.value = text.trim();
            }}
          />
        )}
        <div aria-live="polite">
          {tested.value !== undefined && <Tested tested={tested.value} isOfRank={among === undefined} />}
          {isReady && tested.value === undefined && error.value === undefined && <p class="soft">Checking…</p>}
        </div>
        <Reason />
        <OtherProblem error={error.value} />
      </FormError.Provider>
    </Dialog>
  );
}

function Tested({ tested: { test, move }, isOfRank }: { tested: RankTest; isOfRank: boolean }) {
  const refused = test.checks.filter(({ state }) => state === 'FAIL');
  const reached = test.checks.filter(({ state }) => state !== 'skip');
  return (
    <>
      {move === null &&
        refused.map((check) => (
          <Notice key={check.name} tone="bad">
            <p>{check.detail}</p>
            {'try' in check && (
              <p class="small">
                Try: <Hint text={check.try} />
              </p>
            )}
          </Notice>
        ))}
      {move !== null && move.steps.length === 0 && (
        <Notice>Nothing to change: the member already has these roles.</Notice>
      )}
      {move !== null && move.steps.length > 0 && <MoveWords move={move} isOfRank={isOfRank} />}
      <details class="checks">
        <summary class="small">{reached.length === 1 ? '1 check' : `${reached.length} checks`}</summary>
        <ul>
          {reached.map(({ name, state, detail }) => (
            <li key={name} class="small">
              <Icon name={state === 'ok' ? 'yes' : 'no'} />
              <span>
                {checkNames[name] ?? name}
                {detail !== '' && <span class="soft name"> {detail}</span>}
              </span>
            </li>
          ))}
        </ul>
      </details>
    </>
  );
}

const checkNames: Record<string, string> = {
  platform: 'Roblox',
  rank: 'rank',
  member: 'member',
  'acting account': 'account behind the Roblox key',
};

function MoveWords({
  move: { from, to, steps },
  isOfRank,
}: {
  move: NonNullable<RankTest['move']>;
  isOfRank: boolean;
}) {
  const isUp = to.rank >= (from?.rank ?? 0);
  const words = (kind: 'assign' | 'unassign') =>
    steps.flatMap((step) => (step.kind === kind ? [step.role?.name ?? 'a role'] : [])).join(', ');
  const [given, taken] = [words('assign'), words('unassign')];
  if (!isOfRank)
    return (
      <>
        <p class="preview strong name">{given === '' ? `− ${taken}` : `+ ${given}`}</p>
        <p class="small soft name">{from === null ? 'The rank stays.' : `The rank stays ${from.name}.`}</p>
      </>
    );
  return (
    <>
      <p class="move preview">
        <span class="name soft">{from?.name ?? 'no role'}</span>
        <span class={isUp ? 'up' : 'down'}>
          <Icon name={isUp ? 'up' : 'down'} />
          <span class="unseen">{isUp ? 'up to' : 'down to'}</span>
        </span>
        <strong class="name">{to.name}</strong>
      </p>
      <p class="small soft name">
        {[given && `gives ${given}`, taken && `takes ${taken}`].filter((part) => part !== '').join('; ')}
      </p>
    </>
  );
}
