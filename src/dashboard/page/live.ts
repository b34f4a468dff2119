import { effect, type Signal, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type ApiError, endSession, followEvents, isLost, loginState, read, respondedAt } from './api.ts';
import type { Budget, Chart, Hold, Key, Keys, Person, Roles, Setup, Status, Webhook } from './documents.ts';

const shortestGapMs = 1_000;
/** The delay before the page reopens a broken stream. */
const brokenMs = 2_000;
/** The delay before the page retries a refused stream. */
const refusedMs = 10_000;
/** After this time without an event or a response, the page requests the daemon's status. */
const silenceMs = 25_000;

/** A document from `/api`, refetched whenever the daemon reports changes while a view shows it. */
export class Live<T> {
  readonly data: Signal<T | undefined> = signal(undefined);
  readonly error: Signal<ApiError | undefined> = signal(undefined);
  #users = 0;
  #isBusy = false;
  #isStale = true;
  #fetchedAt = Number.NEGATIVE_INFINITY;

  readonly topic: string;
  readonly #read: () => Promise<T>;

  constructor(topic: string, readDocument: () => Promise<T>) {
    this.topic = topic;
    this.#read = readDocument;
  }

  /** Marks the document as stale, so that it is refetched if a view shows it. */
  invalidate(): void {
    this.#isStale = true;
    this.#follow();
  }

  use(): () => void {
    // while no view uses a document, it misses changes, and a fetch in flight can predate them
    if (this.#users++ === 0) this.#isStale = true;
    shown.add(this);
    this.#follow();
    return () => {
      this.#users--;
      if (this.#users === 0) shown.delete(this);
    };
  }

  get isShown(): boolean {
    return this.#users > 0;
  }

  #follow(): void {
    if (!isListening || this.#users === 0 || !this.#isStale || this.#isBusy || document.hidden) return;
    this.#isBusy = true;
    const waitMs = Math.max(0, this.#fetchedAt + shortestGapMs - performance.now());
    if (waitMs > 0) setTimeout(() => void this.#fetch(), waitMs);
    else void this.#fetch();
  }

  async #fetch(): Promise<void> {
    if (!document.hidden && loginState.peek() === 'in') {
      this.#isStale = false;
      this.#fetchedAt = performance.now();
      try {
        this.data.value = await this.#read();
        this.error.value = undefined;
      } catch (error) {
        this.error.value = error as ApiError;
      }
    }
    this.#isBusy = false;
    this.#follow();
  }
}

/** True once the daemon's stream is open, or after a short wait. Documents fetched before that could miss changes. */
let isListening = false;
const listenTimeoutMs = 500;

const shown = new Set<Live<unknown>>();

export const status = new Live('status', async () => (await read<{ status: Status }>('status')).status);
export const budget = new Live('budget', () => read<Budget>('budget'));
export const chart = new Live('chart', () => read<Chart>('chart'));
export const webhooks = new Live('webhooks', async () => (await read<{ webhooks: Webhook[] }>('webhooks')).webhooks);
export const suspensions = new Live(
  'suspensions',
  async () => (await read<{ suspensions: Hold[] }>('suspensions')).suspensions,
);

export const people = new Live('status', async () => (await read<{ people: Person[] }>('people')).people);
export const setup = new Live('keys', async () => (await read<{ setup: Setup }>('setup')).setup);
export const roles = new Live('roles', () => read<Roles>('roles'));

/** The number of pages of keys shown. A change reloads all of them. */
export const keyPages = signal(1);

export const keys = new Live('keys', async () => {
  const shown = { keys: [] as Key[], next: null as string | null, pages: 0 };
  do {
    const page = await read<Keys>(shown.next === null ? 'keys' : `keys?after=${shown.next}`);
    shown.keys.push(...page.keys);
    shown.next = page.next;
    shown.pages++;
  } while (shown.next !== null && shown.pages < keyPages.peek());
  return shown;
});

/**
 * True for a change or key from a simulated group if the group is now real: the change cannot be undone, and the key
 * cannot be used.
 */
export function isSimulationLeftover({ simulated }: { simulated: boolean }): boolean {
  return simulated && status.data.value?.simulated !== true;
}

export function useLive<T>(live: Live<T>): { data: T | undefined; error: ApiError | undefined } {
  useEffect(() => live.use(), [live]);
  return { data: live.data.value, error: live.error.value };
}

/** True once the daemon has announced that it is stopping. */
export const hasStopped = signal(false);

/** Follows the daemon's stream while a user is logged in and the page is visible. A hidden page makes no requests. */
export function listen(): void {
  let stream: AbortController | undefined;
  let reopening: ReturnType<typeof setTimeout> | undefined;

  const close = () => {
    clearTimeout(reopening);
    stream?.abort();
    stream = undefined;
  };
  const open = () => {
    close();
    if (document.hidden || loginState.peek() !== 'in') return;
    const own = new AbortController();
    stream = own;
    setTimeout(() => isListening || begin(), listenTimeoutMs);
    void followEvents(handleEvent, own.signal).then((end) => {
      if (own !== stream) return;
      if (end === 'refused')
        begin(); // the session has ended, which the next response will report, or too many pages are open
      else isLost.value = true;
      reopening = setTimeout(open, end === 'refused' ? refusedMs : brokenMs);
    });
  };

  effect(() => (loginState.value === 'in' ? open() : close()));
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
  setInterval(() => {
    if (document.hidden || loginState.peek() !== 'in') return;
    if (isLost.peek() || Date.now() - respondedAt.peek() > silenceMs) status.invalidate();
  }, 2_000);
}

function handleEvent(event: string): void {
  respondedAt.value = Date.now();
  isLost.value = event === 'bye';
  if (event === 'hello') begin();
  if (event === 'hello' || event === 'bye') hasStopped.value = event === 'bye';
  if (event === 'logout') endSession();
  invalidateTopic(event);
}

function begin(): void {
  isListening = true;
  for (const live of shown) live.invalidate();
}

function invalidateTopic(topic: string): void {
  for (const live of shown) if (live.topic === topic) live.invalidate();
}
