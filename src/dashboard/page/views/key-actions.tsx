import { useSignal } from '@preact/signals';
import { type ApiError, newKey, send } from '../api.ts';
import type { Key } from '../documents.ts';
import { keys, roles, status, useLive } from '../live.ts';
import { Confirm, OtherProblem } from '../parts/dialog.tsx';
import { Choices, Field, FormError, mayChange, TextField, textOf } from '../parts/form.tsx';
import { RoleField } from '../parts/roles.tsx';
import { SecretDialog } from '../parts/secret.tsx';

export interface Minted {
  key: Pick<Key, 'name' | 'mode'>;
  /** Null for a key for Discord, which has no secret. */
  secret: string | null;
  /** True if the secret replaces a previous one. */
  isRotated?: boolean;
}

const scopes = [
  { value: 'verify', words: 'check that the key works, and read roles', isChosen: true },
  { value: 'rank', words: 'change ranks', isChosen: true },
  { value: 'suspend', words: 'suspend members, and lift suspensions that games began' },
  { value: 'roles', words: 'give and take extra roles' },
];

export function NewKey({ onMinted, onClose }: { onMinted: (minted: Minted) => void; onClose: () => void }) {
  const { data } = useLive(status);
  const make = async (values: FormData, once: string) => {
    const texts = Object.fromEntries(['name', 'places', 'expires'].map((name) => [name, textOf(values, name)]));
    const asked = {
      forDiscord: values.get('test') === 'discord',
      ...texts,
      ...rulesIn(values),
      scopes: values.getAll('scopes'),
      test: values.get('test') === 'test',
    };
    onMinted(await send<Minted>('keys/create', asked, once));
  };
  return (
    <Confirm
      title="New key"
      lead="A key lets a game, or people on Discord, request rank changes within the limits that you set here."
      verb="Create the key"
      act={make}
      onClose={onClose}
    >
      <TextField name="name" label="Name" placeholder="my-game" maxLength={64} />
      <Field
        name="places"
        label="Places that may use it"
        hint="Place ids, or addresses of the games’ pages, one on each line. You can add them later."
      >
        {(about) => <textarea rows={2} spellcheck={false} {...about} />}
      </Field>
      <Choices name="scopes" label="It may" choices={scopes} />
      <Limits />
      <div class="columns">
        <TextField name="expires" label="Expires after (empty: never)" placeholder="90d" />
        <Choices
          name="test"
          label="Kind"
          isSingleChoice
          choices={[
            { value: 'live', words: 'changes ranks', isChosen: true },
            { value: 'test', words: 'for tests: changes nothing' },
            ...(data?.discord ? [{ value: 'discord', words: 'for people on Discord: without a secret' }] : []),
          ]}
        />
      </div>
    </Confirm>
  );
}

function Limits({ of: key }: { of?: Key }) {
  const { data } = useLive(roles);
  const roleOf = (rank: number | null | undefined) => data?.roles.find((role) => role.rank === rank)?.id ?? null;
  return (
    <div class="columns">
      <RoleField
        name="maxRank"
        label="Highest rank it can touch"
        none="no limit for this key"
        isAny
        chosen={roleOf(key?.maxRank)}
      />
      <RoleField
        name="minRank"
        label="Lowest rank it can touch"
        none="no limit for this key"
        isAny
        chosen={roleOf(key?.minRank)}
      />
      <Field name="direction" label="Direction">
        {(about) => (
          <select {...about}>
            <option value="">up and down</option>
            {(['promote', 'demote'] as const).map((direction) => (
              <option key={direction} value={direction} selected={key?.direction === direction}>
                {direction === 'promote' ? 'only up' : 'only down'}
              </option>
            ))}
          </select>
        )}
      </Field>
    </div>
  );
}

function rulesIn(values: FormData): Record<string, unknown> {
  const role = (name: string) => (textOf(values, name) === '' ? null : Number(textOf(values, name)));
  return { maxRank: role('maxRank'), minRank: role('minRank'), direction: textOf(values, 'direction') || null };
}

export function MintedSecret({ key, secret, isRotated = false, onClose }: Minted & { onClose: () => void }) {
  if (secret === null) return null;
  return (
    <SecretDialog title={`The secret of ${key.name}`} secret={secret} onClose={onClose}>
      <ol class="steps">
        <li>
          On the Creator Dashboard, select your game, then <em>Secrets</em>
          {isRotated ? ', and edit the secret' : ', then Create Secret'}.
        </li>
        {!isRotated && (
          <li>
            Enter <code>rankd</code> as its name, and the domain of your rankd server as its domain.
          </li>
        )}
        <li>Paste the secret above, and save.</li>
        {isRotated && <li>Restart the game’s servers: running ones use the old secret until they restart.</li>}
      </ol>
    </SecretDialog>
  );
}

type KeyAction = 'limits' | 'rotate' | 'pause' | 'revoke';

export function KeyDetails({ of: key, onMinted }: { of: Key; onMinted: (minted: Minted) => void }) {
  const asked = useSignal<KeyAction | undefined>(undefined);
  const isUsable = key.state !== 'revoked' && key.state !== 'expired';
  const isDeclared = key.declaredIn !== null;
  const button = (what: KeyAction, words: string) => (
    <button
      type="button"
      onClick={() => {
        asked.value = what;
      }}
    >
      {words}
      <span class="unseen"> {key.name}</span>
    </button>
  );
  return (
    <div class="stack plain">
      <PlacesOf key={key.id} of={key} isFixed={!isUsable || isDeclared} />
      {mayChange.value && isUsable && (
        <div class="row">
          {!isDeclared && button('limits', 'Limits…')}
          {!isDeclared && !key.forDiscord && button('rotate', 'New secret…')}
          {button('pause', key.pausedAt === null ? 'Pause' : 'Resume')}
          {!isDeclared && button('revoke', 'Revoke…')}
        </div>
      )}
      {isDeclared && <p class="small soft">The configuration declares this key ({key.declaredIn}): change it there.</p>}
      {asked.value !== undefined && (
        <ActionDialog
          what={asked.value}
          of={key}
          onMinted={onMinted}
          onClose={() => {
            asked.value = undefined;
          }}
        />
      )}
    </div>
  );
}

interface ActionDialogProps {
  what: KeyAction;
  of: Key;
  onMinted: (minted: Minted) => void;
  onClose: () => void;
}

function ActionDialog({ what, of: key, onMinted, onClose }: ActionDialogProps) {
  const then =
    (path: string, fields: (values: FormData) => object = () => ({})) =>
    async (values: FormData, once: string) => {
      const answer = await send<Minted>(path, { key: key.id, ...fields(values) }, once);
      keys.invalidate();
      if ('secret' in answer) onMinted({ ...answer, isRotated: true });
    };
  if (what === 'limits')
    return (
      <Confirm
        title={`Limits of ${key.name}`}
        lead="The limits apply from the game’s next request."
        verb="Save"
        act={then('keys/set', rulesIn)}
        onClose={onClose}
      >
        <Limits of={key} />
      </Confirm>
    );
  if (what === 'rotate')
    return (
      <Confirm
        title={`New secret for ${key.name}`}
        lead="Both secrets work until the overlap ends."
        verb="Create the secret"
        act={then('keys/rotate', (values) => ({ overlap: textOf(values, 'overlap') }))}
        onClose={onClose}
      >
        <TextField
          name="overlap"
          label="The old secret still works for"
          value="24h"
          hint="such as 24h, or 0s if it has leaked; the game then can’t change ranks until it has the new secret"
        />
      </Confirm>
    );
  if (what === 'revoke')
    return (
      <Confirm
        title={`Revoke ${key.name} permanently?`}
        lead="rankd refuses it from the next request on. This cannot be undone."
        verb="Revoke"
        isIrreversible
        act={then('keys/revoke')}
        onClose={onClose}
      />
    );
  const isPaused = key.pausedAt !== null;
  return (
    <Confirm
      title={`${isPaused ? 'Resume' : 'Pause'} ${key.name}?`}
      lead={isPaused ? 'It can change ranks again immediately.' : 'rankd refuses its rank changes until you resume it.'}
      verb={isPaused ? 'Resume' : 'Pause'}
      act={then(isPaused ? 'keys/resume' : 'keys/pause')}
      onClose={onClose}
    />
  );
}

function PlacesOf({ of: key, isFixed }: { of: Key; isFixed: boolean }) {
  const error = useSignal<ApiError | undefined>(undefined);
  const isBusy = useSignal(false);
  const adding = useSignal(newKey());
  const change = async (does: 'add' | 'enable' | 'disable' | 'remove', fields: object, once?: string) => {
    if (isBusy.value) return false;
    isBusy.value = true;
    error.value = undefined;
    try {
      await send(`places/${does}`, { key: key.id, ...fields }, once);
      keys.invalidate();
      return true;
    } catch (failed) {
      error.value = failed as ApiError;
      return false;
    } finally {
      isBusy.value = false;
    }
  };
  const add = async (form: HTMLFormElement) => {
    const values = new FormData(form);
    const isAdded = await change(
      'add',
      { places: textOf(values, 'places'), note: textOf(values, 'note') },
      adding.value,
    );
    if (!isAdded) return;
    adding.value = newKey();
    form.reset();
  };
  const mayEdit = mayChange.value && !isFixed && !key.anyPlace && !key.forDiscord;
  return (
    <FormError.Provider value={error.value}>
      <h3>Places that may use it</h3>
      {key.forDiscord ? (
        <p class="soft">none: people on Discord use this key through a role in discord.commands</p>
      ) : key.anyPlace ? (
        <p class="soft">any place: it is for a bot or an online shop, not for a game</p>
      ) : (
        <ul class="places">
          {key.whitelist.length === 0 && <li class="soft">none yet: no game can use this key</li>}
          {key.whitelist.map(({ placeId, active, note, declaredIn }) => (
            <li key={placeId} class="row">
              <span class={active ? 'name' : 'name soft'}>
                {placeId}
                {note !== '' && <span class="soft"> {note}</span>}
                {!active && ' (disabled)'}
              </span>
              {mayEdit && declaredIn === null && (
                <>
                  <button
                    type="button"
                    class="small"
                    onClick={() => void change(active ? 'disable' : 'enable', { places: `${placeId}` })}
                  >
                    {active ? 'Disable' : 'Enable'}
                    <span class="unseen"> place {placeId}</span>
                  </button>
                  <button type="button" class="small" onClick={() => void change('remove', { places: `${placeId}` })}>
                    Remove<span class="unseen"> place {placeId}</span>
                  </button>
                </>
              )}
            </li>
          ))}
        </ul>
      )}
      {mayEdit && (
        <form
          class="columns adding"
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            void add(event.currentTarget);
          }}
        >
          <TextField name="places" label="Place id, or address of the game’s page" />
          <TextField name="note" label="Note (optional)" maxLength={200} />
          <div class="row">
            <button type="submit">Add the place</button>
          </div>
        </form>
      )}
      <OtherProblem error={error.value} />
    </FormError.Provider>
  );
}
