import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { WebhookSender } from '../../src/ports/index.ts';

/** A message that Discord stored. */
export interface KeptMessage {
  content?: string;
  flags?: number;
  allowed_mentions: { parse: string[]; roles?: string[] };
  embeds: Array<{
    title: string;
    url?: string;
    description: string;
    color: number;
    fields?: Array<{ value: string }>;
    footer: { text: string };
  }>;
  /** On `Clock.monotonic()`. */
  at: number;
}

interface FakeAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const bucket = { size: 5, windowMs: 2_000 };
/** The path of its one webhook. */
export const discordPath = '/api/webhooks/1487000000000000857/a-token_that-nobody-may-see';

/**
 * The part of Discord that accepts messages from a webhook, with its limits. `violations` has the mistakes that a
 * careful client would not make.
 */
export class FakeDiscord {
  readonly messages: KeptMessage[] = [];
  readonly violations: string[] = [];
  /** True once the webhook was deleted. */
  isDeleted = false;
  /** Answers the next requests with 429 for all webhooks, for this many seconds. */
  globalSeconds: number | undefined;
  /** Called while it accepts the next message. */
  meanwhile: (() => Promise<unknown>) | undefined;
  /** Answers with this status until it is unset. */
  status: number | undefined;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #window = { endsAt: 0, left: bucket.size };
  #closedUntil = 0;

  constructor(clock: Pick<Clock, 'monotonic'> = systemClock) {
    this.#clock = clock;
  }

  /** Accepts requests without a network, for tests on a manual clock. */
  get sender(): WebhookSender {
    return {
      send: async ({ method, address, body = '' }) => {
        const answer = this.answer(method, new URL(address), body);
        const { meanwhile } = this;
        this.meanwhile = undefined;
        await meanwhile?.();
        const header = (name: string) => answer.headers[name];
        return { isAnswered: true, status: answer.status, header, text: answer.body };
      },
      judgeAddress: async () => ({}),
    };
  }

  answer(method: string, { pathname, searchParams }: URL, body: string): FakeAnswer {
    if (pathname !== discordPath || this.isDeleted) return json(404, { message: 'Unknown Webhook', code: 10015 });
    if (method === 'GET') return json(200, { type: 1, channel_id: '1487000000000000001', name: 'Captain Hook' });
    if (searchParams.get('wait') !== 'true') this.violations.push('did not ask whether the message was kept');
    return this.#limited() ?? this.#take(body);
  }

  #limited(): FakeAnswer | undefined {
    const now = this.#clock.monotonic();
    if (now < this.#closedUntil) this.violations.push(`came ${this.#closedUntil - now} ms before its time`);
    if (this.status !== undefined) return { status: this.status, headers: {}, body: 'upstream' };
    if (this.globalSeconds !== undefined) {
      const retryAfter = this.globalSeconds;
      this.globalSeconds = undefined;
      return this.#tooMany(retryAfter, { 'x-ratelimit-global': 'true' });
    }
    if (now >= this.#window.endsAt) this.#window = { endsAt: now + bucket.windowMs, left: bucket.size };
    if (this.#window.left === 0) return this.#tooMany((this.#window.endsAt - now) / 1000, {});
    this.#window.left -= 1;
    return undefined;
  }

  #tooMany(seconds: number, headers: Record<string, string>): FakeAnswer {
    this.#closedUntil = this.#clock.monotonic() + seconds * 1000;
    const answer = json(429, {
      message: 'You are being rate limited.',
      retry_after: seconds,
      global: 'x-ratelimit-global' in headers,
    });
    return { ...answer, headers: { ...answer.headers, ...headers } };
  }

  #take(body: string): FakeAnswer {
    const message = { embeds: [], ...JSON.parse(body) } as KeptMessage;
    const flaw = flawOf(message);
    if (flaw !== undefined) {
      this.violations.push(flaw);
      return json(400, { message: flaw, code: 50035 });
    }
    const now = this.#clock.monotonic();
    this.messages.push({ ...message, at: now });
    const resetAfter = String((this.#window.endsAt - now) / 1000);
    const headers = { 'x-ratelimit-remaining': String(this.#window.left), 'x-ratelimit-reset-after': resetAfter };
    return { ...json(200, { id: String(this.messages.length) }), headers };
  }
}

/** Discord's limits, in UTF-16 units: https://discord.com/developers/docs/resources/message#embed-object-embed-limits */
function flawOf({ content = '', embeds }: KeptMessage): string | undefined {
  if (content === '' && embeds.length === 0) return 'an empty message';
  if (content.length > 2000) return 'content of more than 2000';
  if (embeds.length > 10) return 'more than 10 embeds';
  const texts = embeds.map(({ title, description, fields = [], footer }) => [
    ...[title, description, footer?.text ?? '', ...fields.flatMap((field) => Object.values(field).map(String))],
  ]);
  if (texts.flat().join('').length > 6000) return 'more than 6000 characters over all embeds';
  if (texts.flat().some((one) => !one.isWellFormed())) return 'half a character';
  if (embeds.some(({ title }) => title.length > 256)) return 'a title of more than 256';
  if (embeds.some(({ description }) => description.length > 4096)) return 'a description of more than 4096';
  const fields = embeds.flatMap((embed) => embed.fields ?? []);
  return fields.some(({ value }) => value === '' || value.length > 1024)
    ? 'a field that is empty or too long'
    : undefined;
}

function json(status: number, body: object): FakeAnswer {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** The same on a separate port. `address` is that of its one webhook. */
export async function startFakeDiscord({
  port = 0,
} = {}): Promise<{ discord: FakeDiscord; address: string } & AsyncDisposable> {
  const discord = new FakeDiscord();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://discord');
    const { status, headers, body } = discord.answer(request.method ?? '', url, await text(request));
    response.writeHead(status, headers).end(body);
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  return {
    ...{ discord, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}${discordPath}` },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The address of the webhook for tests without a network. */
export const discordAddress = `https://discord.com${discordPath}`;
