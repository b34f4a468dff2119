import type { KeyObject } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { abortable, deadlineIn } from '../../base/clock.ts';
import { asRankdError, describeRefusal, RankdError } from '../../base/errors.ts';
import { shorten } from '../../base/text.ts';
import type { DiscordConfig } from '../../config/discord.ts';
import { limits, quoted } from '../../core/webhooks/discord.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { sendReply } from '../../usecases/discord/discord-api.ts';
import { findGivable } from '../../usecases/group/group.ts';
import { refuse } from '../callers.ts';
import type { Exchange } from '../route.ts';
import { prove } from '../routes/service.ts';
import { discordLimit, type Throttle } from '../throttle.ts';
import { commandOf, runCommand, usableKey } from './commands.ts';
import {
  type Interaction,
  type InteractionMember,
  interactionTypes,
  publicKeyOf,
  readInteraction,
  refusalOfSignature,
} from './interaction.ts';

/** The deadline for autocomplete choices, well below Discord's 3 s, because a person is typing. */
const choicesWithinMs = 900;
const maxChoices = 25;
/**
 * The deadline for a command. It can be longer than for other requests, because no HTTP response waits for the command.
 */
const commandWithinMs = 60_000;

interface Started {
  app: DaemonContext;
  discord: DiscordConfig;
  interaction: Interaction;
  member: InteractionMember;
  keyName: string;
  requestId: string;
  /** A time on `Clock.monotonic()`. */
  arrivedAt: number;
}

/**
 * Handles requests from Discord. Acknowledges each command immediately, and sends the reply when the command is done.
 */
export class Interactions {
  readonly #throttle: Throttle;
  readonly #stopping = new AbortController();
  #latest: Promise<void> = Promise.resolve();
  #accepted = 0;
  #key: { hex: string; publicKey: KeyObject } | undefined;

  constructor(throttle: Throttle) {
    this.#throttle = throttle;
  }

  /** Gives up on replies that Discord has not accepted yet, and logs each of them. */
  close(): void {
    this.#stopping.abort();
  }

  /** Returns the response to a request. Acknowledges a command before doing any asynchronous work. */
  answer(exchange: Exchange): object | Promise<object> {
    const { app, request } = exchange;
    const { discord } = app;
    if (discord === undefined) throw new RankdError('not_found', 'This address does not exist.');
    const now = app.clock.now();
    const refusal = refusalOfSignature(request, { publicKey: this.#publicKey(discord.publicKey), now });
    if (refusal !== undefined) {
      prove(exchange);
      refuse(exchange, refusal); // only counts it: Discord tests with wrong signatures and must always get a 401
      throw refusal;
    }
    app.discordSeen.lastAt = now;
    const { type, interaction } = readInteraction(request.body as Buffer);
    if (type === interactionTypes.ping) return { type: 1 };
    if (interaction === undefined) return message('rankd supports only slash commands.');
    const isAutocomplete = type === interactionTypes.autocomplete;
    const { application_id, guild_id, member, data } = interaction;
    if (application_id !== discord.application || guild_id !== discord.server || !member)
      return isAutocomplete ? choices([]) : message('rankd is not set up for this Discord server or application.');
    const row = discord.rows.find(({ role }) => member.roles.includes(role));
    if (isAutocomplete) return row === undefined ? choices([]) : ranksFor(app, row.key, interaction);
    request.notes.facts = { command: data.name.slice(0, 32), keyName: row?.key };
    if (row === undefined) return message('None of your roles may change ranks.');
    if (commandOf(data.name) === undefined)
      return message('rankd has no such command. The operator can register its commands: rankd discord setup');
    if (app.requests.isDraining) return message('rankd is stopping or restarting; try again in a moment.');
    const overLimit = this.#throttle.take([discordLimit(member.user.id)], undefined);
    if (overLimit !== undefined) return message(overLimit.message);
    const { arrivedAt } = request.notes;
    void this.#run({ app, discord, interaction, member, keyName: row.key, requestId: request.id, arrivedAt });
    return { type: 5, data: { flags: ephemeral } };
  }

  #publicKey(hex: string): KeyObject {
    if (this.#key?.hex !== hex) this.#key = { hex, publicKey: publicKeyOf(hex) };
    return this.#key.publicKey;
  }

  /** Runs a command, and counts it as one of the daemon's requests until Discord has the reply. Never rejects. */
  async #run(started: Started): Promise<void> {
    const { app, discord, interaction, requestId, arrivedAt } = started;
    const { requests, log } = app;
    const command = interaction.data.name;
    requests.count += 1;
    try {
      await this.#turn();
      const content = await abortable(this.#contentOf(started), this.#stopping.signal);
      const failure = await sendReply(
        app,
        discord,
        { token: interaction.token, content, arrivedAt },
        this.#stopping.signal,
      );
      if (failure !== undefined) log.warn({ requestId, command, why: failure }, unsent);
    } catch {
      log.warn({ requestId, command, why: 'rankd was stopped' }, unsent);
    } finally {
      requests.count -= 1;
    }
  }

  /**
   * Resolves when a command is allowed to start: in order of arrival, after a turn of the event loop in which no
   * command arrived. Simultaneous commands are therefore all acknowledged before any of them runs. Without this, a
   * third of the time until the last of 200 acknowledgements was spent running commands.
   */
  #turn(): Promise<void> {
    this.#accepted += 1;
    this.#latest = this.#latest.then(async () => {
      for (let before = -1; before !== this.#accepted; ) {
        before = this.#accepted;
        await setImmediate();
      }
    });
    return this.#latest;
  }

  /** Never rejects. If the command fails, returns the error's message as the reply. */
  async #contentOf({ app, interaction, member, keyName, requestId }: Started): Promise<string> {
    const { log, clock } = app;
    using deadline = deadlineIn(clock, commandWithinMs);
    const facts: Record<string, unknown> = { requestId, command: interaction.data.name, key: keyName };
    try {
      const text = await runCommand({ app, throttle: this.#throttle, interaction, member, keyName, deadline, facts });
      log.info(facts, 'command from Discord');
      return contentWith(text);
    } catch (cause) {
      const error = asRankdError(cause);
      const { code, details, message } = error;
      if (code === 'internal') log.error({ ...facts, err: cause }, 'a command from Discord failed');
      else log.info({ ...facts, code, why: details ? describeRefusal(details) : message }, 'command from Discord');
      return contentWith(code === 'internal' ? 'Something went wrong inside rankd; its log has the details.' : message);
    }
  }
}

const unsent = 'a command from Discord got no reply; if it changed a rank, the history has the outcome';

/** https://discord.com/developers/docs/resources/message#message-object-message-flags */
const ephemeral = 64;

/** Returns a response that only the person who sent the command can see. */
function message(text: string): object {
  return { type: 4, data: { content: contentWith(text), flags: ephemeral, allowed_mentions: { parse: [] } } };
}

function contentWith(text: string): string {
  const lines = text.split('\n');
  return lines.map((line) => quoted(line, Math.floor(limits.content / lines.length) - 1)).join('\n');
}

function choices(found: Array<{ name: string; value: string }>): object {
  return { type: 8, data: { choices: found } };
}

/**
 * Returns the ranks or roles that the key is allowed to give and that match the typed text, or none if the read fails.
 */
async function ranksFor(app: DaemonContext, keyName: string, { data }: Interaction): Promise<object> {
  const focused = data.options.find((one) => one.focused);
  if (focused?.name !== 'rank' && focused?.name !== 'role') return choices([]);
  const typed = String(focused.value ?? '')
    .trim()
    .toLowerCase();
  using deadline = deadlineIn(app.clock, choicesWithinMs);
  const find = async () => {
    const key = await usableKey(app, keyName, focused.name === 'rank' ? 'rank' : 'roles');
    const call = { signal: deadline.signal, deadlineAt: deadline.at, lane: key.id };
    const found = await findGivable(app, key, call);
    return found[focused.name === 'rank' ? 'givable' : 'alongside'].filter(
      ({ name, rank }) => name.toLowerCase().includes(typed) || String(rank).startsWith(typed),
    );
  };
  const roles = await abortable(find(), deadline.signal).catch(() => []);
  return choices(
    roles
      .slice(0, maxChoices)
      .map(({ id, name, rank }) => ({ name: `${asChoiceName(name)} (${rank})`, value: String(id) })),
  );
}

/** Shortens a name that has more than 90 UTF-16 code units, because Discord allows 100 for the whole choice. */
function asChoiceName(name: string): string {
  const whole = name.toWellFormed();
  return whole.length <= 90 ? whole : shorten(whole, 45);
}
