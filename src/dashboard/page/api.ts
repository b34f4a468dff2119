import { signal } from '@preact/signals';
import type { ErrorDocument, Session } from './documents.ts';

/** An error from the daemon, or the lack of a response. The message is for the operator. */
export class ApiError extends Error {
  readonly details: Partial<ErrorDocument> & { status?: number };

  constructor(message: string, details: Partial<ErrorDocument> & { status?: number } = {}) {
    super(message);
    this.details = details;
  }
}

export const loginState = signal<'unknown' | 'in' | 'out'>('unknown');

/** `undefined` until the daemon has reported the session. */
export const session = signal<Session | undefined>(undefined);

/** The error from the last refused login. */
export const refusal = signal<ApiError | undefined>(undefined);

export const respondedAt = signal(Date.now());

/** True while the daemon does not respond. */
export const isLost = signal(false);

/** The page's path, with a trailing slash. */
export const base = new URL('.', import.meta.url).pathname;

/**
 * The name of the local storage item that contains the token. The cookie alone is not enough, because browsers send it
 * to every port on this machine.
 */
const tokenName = 'rankd-token';

const readTimeoutMs = 10_000;

export async function read<T>(
  path: string,
  { isSlow = false, signal }: { isSlow?: boolean; signal?: AbortSignal } = {},
): Promise<T> {
  const limits = [...(isSlow ? [] : [AbortSignal.timeout(readTimeoutMs)]), ...(signal === undefined ? [] : [signal])];
  return ask<T>(path, { signal: AbortSignal.any(limits) });
}

/** Sends a POST request. A retry with the same `once` receives the first request's outcome and changes nothing. */
export async function send<T>(path: string, body: object, once = newKey()): Promise<T> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': once };
  return ask<T>(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Returns a new idempotency key. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export async function logIn(link: string): Promise<void> {
  try {
    const { session: made } = await send<{ session: Session & { token: string } }>('login', { link });
    localStorage.setItem(tokenName, made.token);
    session.value = made;
    loginState.value = 'in';
  } catch (error) {
    refusal.value = error as ApiError;
    loginState.value = 'out';
  }
}

export async function resumeSession(): Promise<void> {
  if (localStorage.getItem(tokenName) === null) {
    loginState.value = 'out';
    return;
  }
  loginState.value = 'in';
  session.value = (await read<{ session: Session }>('session')).session;
}

export async function logOut(): Promise<void> {
  await send('logout', {});
  endSession();
}

export function endSession(): void {
  localStorage.removeItem(tokenName);
  loginState.value = 'out';
}

/**
 * Calls `onEvent` with the name of each event in the stream, until the stream ends or is refused. Does not use
 * `EventSource`, because it cannot send the token.
 */
export async function followEvents(
  onEvent: (event: string) => void,
  signal: AbortSignal,
): Promise<'broken' | 'refused'> {
  try {
    const response = await fetch(`${base}api/events`, { headers: ownHeaders(), signal });
    if (!response.ok || response.body === null) return 'refused';
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ''; ; ) {
      const { done, value } = await reader.read();
      if (done) return 'broken';
      const events = (rest + value).split('\n\n');
      rest = events.pop() ?? '';
      for (const event of events) {
        const name = /^event: (\w+)$/m.exec(event)?.[1];
        if (name !== undefined) onEvent(name);
      }
    }
  } catch {
    return 'broken';
  }
}

function ownHeaders(): Record<string, string> {
  return { 'x-rankd-token': localStorage.getItem(tokenName) ?? '' };
}

async function ask<T>(path: string, init: RequestInit, triesBefore = 0): Promise<T> {
  const response = await fetch(`${base}api/${path}`, {
    ...init,
    headers: { ...init.headers, ...ownHeaders() },
  }).catch((error: Error) => {
    if (error.name === 'AbortError') throw error;
    isLost.value = true;
    throw new ApiError('rankd is not responding.', { try: 'rankd status' });
  });
  respondedAt.value = Date.now();
  isLost.value = false;
  const document = await response.json().catch(() => ({}));
  if (response.ok) return document as T;
  const failure = document as Partial<ErrorDocument>;
  if (response.status === 401) endSession();
  if (response.status === 429 && init.method === undefined && triesBefore < 3) {
    await new Promise((resolve) => setTimeout(resolve, (failure.retryAfter ?? 1) * 1000));
    return ask(path, init, triesBefore + 1);
  }
  throw new ApiError(failure.message ?? `rankd responded with status ${response.status}.`, {
    ...failure,
    status: response.status,
  });
}
