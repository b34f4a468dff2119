import type { OutboundProxy } from '../base/outbound-proxy.ts';

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
  /** The proxy that the request does not go through, for the words of a failure. */
  proxy?: OutboundProxy | undefined;
}

/** What a target answered, or why it did not, in words that name no address. */
export type TargetAnswer =
  | { isAnswered: true; status: number; header(name: string): string | undefined; text: string }
  | { isAnswered: false; error: string };

/** `refusal`: why `send` would never call this address. `doubt`: why it would not do so now. */
export interface AddressVerdict {
  refusal?: string;
  doubt?: string;
}

/** Carries requests to the targets of webhooks: to the address that is given, to no other, and never to one that is not public. */
export interface Courier {
  /** Never rejects, but for `signal`. A redirect is an answer like any other. */
  send(letter: Letter, signal?: AbortSignal): Promise<TargetAnswer>;
  /** Looks the address up and sends nothing. Throws nothing. */
  judgeAddress(target: Pick<Letter, 'address' | 'allowPrivate' | 'proxy'>): Promise<AddressVerdict>;
}
