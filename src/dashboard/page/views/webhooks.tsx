import { useSignal } from '@preact/signals';
import { type ApiError, send } from '../api.ts';
import type { TestedWebhook, Webhook } from '../documents.ts';
import { webhooks } from '../live.ts';
import { Chip, type Tone } from '../parts/chip.tsx';
import { Empty } from '../parts/empty.tsx';
import type { IconName } from '../parts/icon.tsx';
import { Shell } from '../parts/notice.tsx';
import { Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { counted, LiveView } from './view.tsx';

const states: Record<Webhook['state'], { tone: Tone; icon: IconName }> = {
  enabled: { tone: 'good', icon: 'yes' },
  failing: { tone: 'bad', icon: 'warning' },
  disabled: { tone: 'quiet', icon: 'paused' },
};

/** The webhooks, and the state of their deliveries. */
export function Webhooks() {
  return (
    <LiveView
      title="Webhooks"
      live={webhooks}
      lead={(list) => (list.length === 0 ? '' : counted(list.length, 'webhook'))}
    >
      {(list) => (
        <section class="sheet" aria-label="Webhooks">
          {list.length === 0 ? <NoWebhooks /> : <WebhooksTable list={list} />}
        </section>
      )}
    </LiveView>
  );
}

function NoWebhooks() {
  return (
    <Empty icon="webhooks" title="No webhook yet">
      <p>
        A webhook tells a channel in Discord, or a program of yours, what happens. Its address is a secret, so it is
        given in a shell:
      </p>
      <Shell line="rankd webhook add staff-log" />
    </Empty>
  );
}

const columns = [
  'Webhook',
  'State',
  { title: 'Waiting', class: 'roomy number' },
  { title: 'Last success', class: 'wide' },
  { title: 'Told of', class: 'wide' },
  { spoken: 'Actions' },
];

function WebhooksTable({ list }: { list: Webhook[] }) {
  return (
    <Table caption="Webhooks" columns={columns}>
      {list.map((webhook) => (
        <Row key={webhook.id} webhook={webhook} />
      ))}
    </Table>
  );
}

function Row({ webhook }: { webhook: Webhook }) {
  const { name, kind, target, state, why, lastError, backlog, oldestWaiting, lastSuccess, nextTry, events } = webhook;
  const trouble = why ?? (state === 'failing' ? lastError : null);
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
        {backlog > 0 && <p class="tight small">{backlog} wait</p>}
        {trouble !== null && <p class="small name">{trouble}</p>}
        {state === 'failing' && nextTry !== null && (
          <p class="small soft">
            tried again <Time at={nextTry} />
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
      <td class="number">
        <Test name={name} />
      </td>
    </tr>
  );
}

/** Sends one test event, and shows the target's response. */
function Test({ name }: { name: string }) {
  const isBusy = useSignal(false);
  const result = useSignal<TestedWebhook | ApiError | undefined>(undefined);
  const test = async () => {
    isBusy.value = true;
    result.value = await send<TestedWebhook>('webhooks/test', { webhook: name }).catch((error: ApiError) => error);
    isBusy.value = false;
  };
  return (
    <>
      <button type="button" class="small" disabled={isBusy.value} onClick={() => void test()}>
        {isBusy.value ? 'Testing…' : 'Test'}
        <span class="unseen"> {name}</span>
      </button>
      <p class="small told" role="status">
        {result.value !== undefined && said(result.value)}
      </p>
    </>
  );
}

function said(result: TestedWebhook | ApiError): string {
  if (result instanceof Error) return result.message;
  return result.delivered ? `delivered in ${result.ms} ms` : (result.error ?? `refused with ${result.status}`);
}
