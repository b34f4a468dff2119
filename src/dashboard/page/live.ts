import { effect, type Signal, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type ApiError, endSession, entry, followEvents, heardAt, isLost, read } from './api.ts';
import type { Budget, Chart, Hold, Status, Webhook } from './documents.ts';

const shortestGapMs = 1_000;
/** How long after a stream broke off, or was refused, it is asked for again. */
const brokenMs = 2_000;
const refusedMs = 10_000;
/** Longer than the stream of a daemon that lives is ever silent. */
const silenceMs = 25_000;

/** What one address of `/api` says. It is fetched again if the daemon tells of news, while a view shows it. */
export class Live<T> {
  readonly data: Signal<T | undefined> = signal(undefined);
  readonly error: Signal<ApiError | undefined> = signal(undefined);
  #users = 0;
  #isBusy = false;
  #isStale = true;
  #fetchedAt = Number.NEGATIVE_INFINITY;

  readonly topic: string;
  readonly #read: () => Promise<T>;

  constructor(topic: string, readIt: () => Promise<T>) {
    this.topic = topic;
    this.#read = readIt;
  }

  /** Says that the document has changed. */
  touch(): void {
    this.#isStale = true;
    this.#follow();
  }

  use(): () => void {
    // Nobody was told of news meanwhile, and a fetch that had begun may have ended before them.
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
    if (!document.hidden && entry.peek() === 'in') {
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

/** False until the daemon tells of news, for what is fetched before that may be old at once. It is not waited for long. */
let isListening = false;
const listenTimeoutMs = 500;

/** What the views show now. */
const shown = new Set<Live<unknown>>();

export const status = new Live('status', async () => (await read<{ status: Status }>('status')).status);
export const budget = new Live('budget', () => read<Budget>('budget'));
export const chart = new Live('chart', () => read<Chart>('chart'));
export const webhooks = new Live('webhooks', async () => (await read<{ webhooks: Webhook[] }>('webhooks')).webhooks);
export const suspensions = new Live(
  'suspensions',
  async () => (await read<{ suspensions: Hold[] }>('suspensions')).suspensions,
);

/** True on a real group for a change or key of the simulation, which can't be undone or used there. */
export function isLeftFromSimulation({ simulated }: { simulated: boolean }): boolean {
  return simulated && status.data.value?.simulated !== true;
}

/** Keeps a document fresh while the component is shown. */
export function useLive<T>(live: Live<T>): { data: T | undefined; error: ApiError | undefined } {
  useEffect(() => live.use(), [live]);
  return { data: live.data.value, error: live.error.value };
}

/** True once the daemon has said that it stops. */
export const hasStopped = signal(false);

/** Listens to the daemon while somebody is logged in and looks: a hidden page asks for nothing. */
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
    if (document.hidden || entry.peek() !== 'in') return;
    const own = new AbortController();
    stream = own;
    setTimeout(() => isListening || begin(), listenTimeoutMs);
    void followEvents(heard, own.signal).then((end) => {
      if (own !== stream) return;
      if (end === 'refused')
        begin(); // the session has ended, which the next answer says, or too many pages listen
      else isLost.value = true;
      reopening = setTimeout(open, end === 'refused' ? refusedMs : brokenMs);
    });
  };

  effect(() => (entry.value === 'in' ? open() : close()));
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
  setInterval(() => {
    if (document.hidden || entry.peek() !== 'in') return;
    if (isLost.peek() || Date.now() - heardAt.peek() > silenceMs) status.touch();
  }, 2_000);
}

function heard(event: string): void {
  heardAt.value = Date.now();
  isLost.value = event === 'bye';
  if (event === 'hello') begin();
  if (event === 'hello' || event === 'bye') hasStopped.value = event === 'bye';
  if (event === 'logout') endSession();
  touch(event);
}

/** Has everything that is shown fetched anew. */
function begin(): void {
  isListening = true;
  for (const live of shown) live.touch();
}

function touch(topic: string): void {
  for (const live of shown) if (live.topic === topic) live.touch();
}
