/** One request to a target. */
export interface Letter {
  method: 'GET' | 'POST';
  /** As good as a password. */
  address: string;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  /** What is cut out of everything that the target answers, beside the address. */
  secrets?: readonly string[];
  timeoutMs: number;
  /** Networks that are not public, and may be called all the same. */
  allowPrivate: readonly string[];
}

/** What a target answered, or why it did not, in words that name no address. */
export type TargetAnswer =
  | { isAnswered: true; status: number; header(name: string): string | undefined; text: string }
  | { isAnswered: false; error: string };

/** Carries requests to the targets of webhooks: to the address that is given, to no other, and never to one that is not public. */
export interface Courier {
  /** Never rejects, but for `signal`. A redirect is an answer like any other. */
  send(letter: Letter, signal?: AbortSignal): Promise<TargetAnswer>;
  /** Why nothing will ever be sent to this address, as `send` would find; `undefined` if it can be. Nothing is sent. */
  whyForbidden(target: Pick<Letter, 'address' | 'allowPrivate'>): Promise<string | undefined>;
}
