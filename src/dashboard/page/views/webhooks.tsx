import { useSignal } from '@preact/signals';
import { type ApiError, send } from '../api.ts';
import type { TestedWebhook, Webhook } from '../documents.ts';
import { webhooks } from '../live.ts';
import { type Appearance, Chip } from '../parts/chip.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Choices, mayChange, TextField, textOf } from '../parts/form.tsx';
import { Shell } from '../parts/notice.tsx';
import { SecretDialog } from '../parts/secret.tsx';
import { Empty, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { counted, LiveView, NewButton } from './view.tsx';

const states: Record<Webhook['state'], Appearance> = {
  enabled: { tone: 'good', icon: 'yes' },
  failing: { tone: 'bad', icon: 'warning' },
  disabled: { tone: 'quiet', icon: 'paused' },
};

interface Added {
  webhook: Webhook;
  secret: string | null;
}

export function Webhooks() {
  const isNew = useSignal(false);
  const added = useSignal<Added | undefined>(undefined);
  const action = mayChange.value && <NewButton opens={isNew}>New webhook…</NewButton>;
  return (
    <LiveView
      title="Webhooks"
      live={webhooks}
      lead={(list) => (list.length === 0 ? '' : counted(list.length, 'webhook'))}
      action={action}
    >
      {(list) => (
        <>
          <section class="sheet" aria-label="Webhooks">
            {list.length === 0 ? <NoWebhooks /> : <WebhooksTable list={list} />}
          </section>
          {isNew.value && (
            <NewWebhook
              onAdded={(one) => {
                added.value = one;
              }}
              onClose={() => {
                isNew.value = false;
              }}
            />
          )}
          {added.value?.secret != null && (
            <SecretDialog
              title={`The secret of ${added.value.webhook.name}`}
              secret={added.value.secret}
              onClose={() => {
                added.value = undefined;
              }}
            >
              <p>rankd signs each event with it. Your program verifies the signature (Standard Webhooks).</p>
            </SecretDialog>
          )}
        </>
      )}
    </LiveView>
  );
}

function NoWebhooks() {
  return (
    <Empty icon="webhooks" title="No webhooks yet">
      <p>
        A webhook reports events to a Discord channel or to your own program. In Discord, copy the address under{' '}
        <em>Edit Channel, Integrations, Webhooks</em>. In a shell, run
      </p>
      <Shell line="rankd webhook add staff-log" />
    </Empty>
  );
}

const eventWords: Record<string, string> = {
  changes: 'rank changes, suspensions and undos',
  alarms: 'alarms: problems that need you',
  refusals: 'refused and failed changes',
  keys: 'keys that are created, paused or revoked',
  all: 'everything',
};

function Events({ chosen }: { chosen: readonly string[] }) {
  const others = chosen.filter((name) => eventWords[name] === undefined).map((name) => ({ value: name, words: name }));
  const choices = [...Object.entries(eventWords).map(([value, words]) => ({ value, words })), ...others];
  return (
    <Choices
      name="events"
      label="Events to report"
      choices={choices.map((choice) => ({ ...choice, isChosen: chosen.includes(choice.value) }))}
    />
  );
}

function NewWebhook({ onAdded, onClose }: { onAdded: (added: Added) => void; onClose: () => void }) {
  const add = async (values: FormData, once: string) => {
    const asked = { name: textOf(values, 'name'), url: textOf(values, 'url'), events: values.getAll('events') };
    onAdded(await send<Added>('webhooks/add', asked, once));
    webhooks.invalidate();
  };
  return (
    <Confirm
      title="New webhook"
      lead="For a Discord channel, or for your own program."
      verb="Add the webhook"
      act={add}
      onClose={onClose}
    >
      <TextField name="name" label="Name" placeholder="staff-log" maxLength={40} />
      <TextField
        name="url"
        isHidden
        label="Address"
        hint="It is a secret, so it is hidden here, and never shown again."
      />
      <Events chosen={['changes', 'alarms']} />
    </Confirm>
  );
}

const columns = [
  'Webhook',
  'State',
  { title: 'Waiting', class: 'roomy number' },
  { title: 'Last success', class: 'wide' },
  { title: 'Reports', class: 'wide' },
  { spoken: 'Actions' },
];

function WebhooksTable({ list }: { list: Webhook[] }) {
  return (
    <Table caption="Webhooks" columns={columns} class="stacked">
      {list.map((webhook) => (
        <Row key={webhook.id} webhook={webhook} />
      ))}
    </Table>
  );
}

function Row({ webhook }: { webhook: Webhook }) {
  const { name, kind, target, state, why, lastError, backlog, oldestWaiting, lastSuccess, nextTry, events } = webhook;
  const problem = why ?? (state === 'failing' ? lastError : null);
  return (
    <tr>
      <th scope="row">
        <span class="name strong">{name}</span>
        <p class="small soft name">
          {kind}, {target}
        </p>
      </th>
      <td>
        <Chip {...states[state]}>{state}</Chip>
        {backlog > 0 && <p class="tight small">{backlog} waiting</p>}
        {problem !== null && <p class="small name">{problem}</p>}
        {state === 'failing' && nextTry !== null && (
          <p class="small soft">
            next attempt <Time at={nextTry} />
          </p>
        )}
      </td>
      <td class="roomy number">
        {backlog}
        {oldestWaiting !== null && (
          <p class="small soft">
            oldest <Time at={oldestWaiting} />
          </p>
        )}
      </td>
      <td class="wide">{lastSuccess === null ? <span class="soft">never</span> : <Time at={lastSuccess} />}</td>
      <td class="wide">
        <ul class="tags">
          {events.map((event) => (
            <li key={event} class="tag">
              {event}
            </li>
          ))}
        </ul>
      </td>
      <td class="end">{mayChange.value && <Actions of={webhook} />}</td>
    </tr>
  );
}

type WebhookAction = 'events' | 'pause' | 'remove';

function Actions({ of: webhook }: { of: Webhook }) {
  const asked = useSignal<WebhookAction | undefined>(undefined);
  const { name, state, events, declaredIn } = webhook;
  const isPaused = state === 'disabled';
  const close = () => {
    asked.value = undefined;
  };
  const button = (what: WebhookAction, words: string) => (
    <button
      type="button"
      class="small"
      onClick={() => {
        asked.value = what;
      }}
    >
      {words}
      <span class="unseen"> {name}</span>
    </button>
  );
  const then =
    (path: string, fields: (values: FormData) => object = () => ({})) =>
    async (values: FormData, once: string) => {
      await send(path, { webhook: name, ...fields(values) }, once);
      webhooks.invalidate();
    };
  return (
    <>
      <div class="row ends">
        <Test name={name} />
        {declaredIn === null && button('events', 'Events…')}
        {(declaredIn === null || isPaused) && button('pause', isPaused ? 'Enable…' : 'Pause…')}
        {declaredIn === null && button('remove', 'Remove…')}
      </div>
      {asked.value === 'events' && (
        <Confirm
          title={`Events of ${name}`}
          lead="This applies from the next event."
          verb="Save"
          act={then('webhooks/set', (values) => ({ events: values.getAll('events') }))}
          onClose={close}
        >
          <Events chosen={events} />
        </Confirm>
      )}
      {asked.value === 'pause' && !isPaused && (
        <Confirm
          title={`Pause ${name}?`}
          lead="rankd sends it nothing until you enable it again. Events wait in the meantime."
          verb="Pause"
          act={then('webhooks/disable')}
          onClose={close}
        />
      )}
      {asked.value === 'pause' && isPaused && (
        <Confirm
          title={`Enable ${name}?`}
          lead="Choose which events it gets."
          verb="Enable"
          act={then('webhooks/enable', (values) => ({ fromNow: values.get('from') === 'now' }))}
          onClose={close}
        >
          <Choices
            name="from"
            label="Events"
            isSingleChoice
            choices={[
              { value: 'waiting', words: 'waiting and new events', isChosen: true },
              { value: 'now', words: 'only new events' },
            ]}
          />
        </Confirm>
      )}
      {asked.value === 'remove' && (
        <Confirm
          title={`Remove ${name}?`}
          lead="rankd drops the waiting events and sends it nothing more."
          verb="Remove"
          isIrreversible
          act={then('webhooks/remove')}
          onClose={close}
        />
      )}
    </>
  );
}

/** A button that sends a test event and shows the target's response. */
function Test({ name }: { name: string }) {
  const isBusy = useSignal(false);
  const result = useSignal<TestedWebhook | ApiError | undefined>(undefined);
  const test = async () => {
    isBusy.value = true;
    result.value = await send<TestedWebhook>('webhooks/test', { webhook: name }).catch((error: ApiError) => error);
    isBusy.value = false;
  };
  return (
    <div>
      <button type="button" class="small" disabled={isBusy.value} onClick={() => void test()}>
        {isBusy.value ? 'Testing…' : 'Test'}
        <span class="unseen"> {name}</span>
      </button>
      <p class="small" role="status">
        {result.value !== undefined && resultText(result.value)}
      </p>
    </div>
  );
}

function resultText(result: TestedWebhook | ApiError): string {
  if (result instanceof Error) return result.message;
  return result.delivered ? `delivered in ${result.ms} ms` : (result.error ?? `refused with ${result.status}`);
}
