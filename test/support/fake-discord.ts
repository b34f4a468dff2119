import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { WebhookSender } from '../../src/ports/index.ts';
import { discordIds, interactionOf, type SentCommand, signed } from './discord-interactions.ts';

export interface StoredMessage {
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
  /** The time on `Clock.monotonic()` at which the fake accepted the message. */
  at: number;
}

interface FakeAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const bucket = { size: 5, windowMs: 2_000 };
export const discordPath = '/api/webhooks/1487000000000000857/a-token_that-nobody-may-see';

/** A reply to a command, with the token of the command's interaction. */
export interface ReceivedReply {
  token: string;
  content: string;
  allowed_mentions: { parse: string[] };
}

/** rankd's response to a posted command. */
export interface CommandResponse {
  status: number;
  response: {
    type: number;
    data?: { content?: string; flags?: number; choices?: Array<{ name: string; value: string }> };
  };
  token: string;
  /** rankd's response time. */
  ms: number;
  /** The posted body, which a test can replay. */
  body: string;
}

/**
 * A fake Discord. It accepts messages to a webhook, registers slash commands, posts them to rankd when a test runs
 * them, and accepts the replies. `violations` lists mistakes that a careful client would not make.
 */
export class FakeDiscord {
  readonly messages: StoredMessage[] = [];
  readonly violations: string[] = [];
  /** True to respond as if the webhook had been deleted. */
  isDeleted = false;
  /** If set, the next message gets a 429 with a global rate limit that lasts this many seconds. */
  globalSeconds: number | undefined;
  /** Called once, while the next request through `sender` is in flight. */
  duringNextRequest: (() => Promise<unknown>) | undefined;
  /** If set, the status of every response to a message. */
  status: number | undefined;
  /** The commands that were registered last. */
  commands: Array<{ name: string }> | undefined;
  /** The only bot token that the fake accepts for registering commands. */
  botToken = 'a-bot-token_that-nobody-may-see';
  /** If false, the application is not in the server, so it can't register commands there. */
  isInServer = true;
  readonly replies: ReceivedReply[] = [];
  /** The responses to the next replies, in order. A number is a status; with `hang`, the fake never responds. */
  readonly replyFaults: Array<FakeAnswer | number | 'hang'> = [];
  /** The tokens of commands that rankd acknowledged. The fake rejects replies with any other token. */
  readonly #acknowledged = new Set<string>();
  readonly #clock: Pick<Clock, 'monotonic'>;
  #window = { endsAt: 0, left: bucket.size };
  #closedUntil = 0;

  constructor(clock: Pick<Clock, 'monotonic'> = systemClock) {
    this.#clock = clock;
  }

  /** Returns a sender that calls the fake without a network, for tests on a manual clock. */
  get sender(): WebhookSender {
    return {
      send: async ({ method, address, body = '' }) => {
        const answer = this.answer(method, new URL(address), body);
        const { duringNextRequest } = this;
        this.duringNextRequest = undefined;
        await duringNextRequest?.();
        const header = (name: string) => answer.headers[name];
        return { isAnswered: true, status: answer.status, header, text: answer.body };
      },
      judgeAddress: async () => ({}),
    };
  }

  async interact(url: string, command: SentCommand): Promise<CommandResponse> {
    return this.post(url, JSON.stringify(interactionOf(command)));
  }

  async post(url: string, body: string, headers = signed(body)): Promise<CommandResponse> {
    const { token } = JSON.parse(body);
    const startedAt = performance.now();
    const response = await fetch(url, { method: 'POST', headers, body });
    const answer = (await response.json()) as CommandResponse['response'];
    if (answer.type === 5) this.#acknowledged.add(token);
    return { status: response.status, response: answer, token, ms: performance.now() - startedAt, body };
  }

  /** Waits for the reply to a command. Returns its text without Markdown's backslashes. */
  async replyTo({ token }: Pick<CommandResponse, 'token'>, withinMs = 10_000): Promise<string> {
    const giveUpAt = performance.now() + withinMs;
    for (;;) {
      const reply = this.replies.findLast((one) => one.token === token);
      if (reply !== undefined) return reply.content.replaceAll('\\', '');
      if (performance.now() > giveUpAt) throw new Error('rankd sent no reply');
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Posts a command and returns the text that the user sees: the reply, or rankd's immediate response. */
  async runCommand(url: string, command: SentCommand): Promise<string> {
    const sent = await this.interact(url, command);
    if (sent.response.type === 5) return this.replyTo(sent);
    return (sent.response.data?.content ?? JSON.stringify(sent.response)).replaceAll('\\', '');
  }

  /**
   * Returns the response to a command registration or to the reply to a command, or `hang` if the fake must not
   * respond. Returns `undefined` for any other path.
   */
  answerApi(method: string, path: string, { headers, body }: ApiRequest): FakeAnswer | 'hang' | undefined {
    const [, application, token] = /^\/api\/v10\/webhooks\/(\d+)\/([^/]+)\/messages\/@original$/.exec(path) ?? [];
    const isRegistration =
      path === `/api/v10/applications/${discordIds.application}/guilds/${discordIds.server}/commands`;
    if (token === undefined && !isRegistration) return undefined;
    if (!/^DiscordBot \(\S+, \S+\)$/.test(headers['user-agent'] ?? ''))
      this.violations.push("a User-Agent that is not a bot's");
    if (isRegistration) return method === 'PUT' ? this.#register(headers['authorization'], body) : json(405, {});
    if (method !== 'PATCH' || application !== discordIds.application)
      return json(404, { message: 'Unknown', code: 10002 });
    const fault = this.replyFaults.shift();
    if (fault === 'hang') return 'hang';
    if (fault !== undefined)
      return typeof fault === 'number' ? { status: fault, headers: {}, body: 'upstream' } : fault;
    if (!this.#acknowledged.has(String(token))) return json(404, { message: 'Unknown Webhook', code: 10015 });
    const reply = JSON.parse(body) as Omit<ReceivedReply, 'token'>;
    if (reply.content.length === 0 || reply.content.length > 2000) this.violations.push('a reply of the wrong length');
    this.replies.push({ ...reply, token: String(token) });
    return json(200, { id: '1' });
  }

  #register(authorization: string | undefined, body: string): FakeAnswer {
    if (authorization !== `Bot ${this.botToken}`) return json(401, { message: '401: Unauthorized', code: 0 });
    if (!this.isInServer) return json(403, { message: 'Missing Access', code: 50001 });
    const commands = JSON.parse(body) as RegisteredCommand[];
    const flaw = commands.map(flawOfCommand).find((one) => one !== undefined);
    if (flaw !== undefined) {
      this.violations.push(flaw);
      return json(400, { message: flaw, code: 50035 });
    }
    this.commands = commands;
    return json(200, commands);
  }

  answer(method: string, { pathname, searchParams }: URL, body: string): FakeAnswer {
    if (pathname !== discordPath || this.isDeleted) return json(404, { message: 'Unknown Webhook', code: 10015 });
    if (method === 'GET') return json(200, { type: 1, channel_id: '1487000000000000001', name: 'Captain Hook' });
    if (searchParams.get('wait') !== 'true') this.violations.push('a message without wait=true');
    return this.#limited() ?? this.#take(body);
  }

  #limited(): FakeAnswer | undefined {
    const now = this.#clock.monotonic();
    if (now < this.#closedUntil)
      this.violations.push(`a message ${this.#closedUntil - now} ms before the end of the rate limit`);
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
    const message = { embeds: [], ...JSON.parse(body) } as StoredMessage;
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

interface ApiRequest {
  headers: Record<string, string | undefined>;
  body: string;
}

interface RegisteredCommand {
  name: string;
  description: string;
  options: Array<{ name: string; description: string; required?: boolean }>;
}

/**
 * Returns the first flaw in a command, according to
 * https://discord.com/developers/docs/interactions/application-commands#application-command-object
 */
function flawOfCommand({ name, description, options }: RegisteredCommand): string | undefined {
  const named = [{ name, description }, ...options];
  if (named.some((one) => !/^[-_'\p{Ll}\p{N}]{1,32}$/u.test(one.name))) return `a wrong name in ${name}`;
  if (named.some((one) => one.description.length < 1 || one.description.length > 100))
    return `a description in ${name}`;
  if (options.length > 25) return `more than 25 options of ${name}`;
  const firstOptional = options.findIndex((one) => !one.required);
  return firstOptional >= 0 && options.slice(firstOptional).some((one) => one.required)
    ? `a required option of ${name} after an optional one`
    : undefined;
}

/**
 * Returns the first flaw in a message. Lengths are in UTF-16 code units. The limits of an embed's texts are from
 * https://discord.com/developers/docs/resources/message#embed-object-embed-limits
 */
function flawOf({ content = '', embeds }: StoredMessage): string | undefined {
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

/** Starts a fake Discord. `address` is the URL of its webhook; `apiBaseUrl` is the value for `discord.api_base_url`. */
export async function startFakeDiscord({
  port = 0,
} = {}): Promise<{ discord: FakeDiscord; address: string; apiBaseUrl: string } & AsyncDisposable> {
  const discord = new FakeDiscord();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://discord');
    const { method = '' } = request;
    const sent = await text(request);
    const headers = request.headers as Record<string, string | undefined>;
    if (url.pathname === '/fake/command') {
      const { to, command } = JSON.parse(sent) as { to: string; command: SentCommand };
      const text = await discord.runCommand(to, command).catch((error) => `no answer: ${error.message}`);
      return void response.end(text);
    }
    const api = discord.answerApi(method, url.pathname, { headers, body: sent });
    if (api === 'hang') return;
    const { status, headers: answered, body } = api ?? discord.answer(method, url, sent);
    response.writeHead(status, answered).end(body);
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ discord, address: `${origin}${discordPath}`, apiBaseUrl: `${origin}/api/v10` },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The webhook's address in tests without a network. */
export const discordAddress = `https://discord.com${discordPath}`;
