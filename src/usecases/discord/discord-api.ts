import { RankdError } from '../../base/errors.ts';
import { version } from '../../base/version.ts';
import type { DiscordConfig } from '../../config/discord.ts';
import { registeredCommands } from '../../core/discord-commands.ts';
import type { TargetAnswer } from '../../ports/index.ts';
import type { DaemonContext } from '../daemon-context.ts';

/** Discord accepts replies for 15 minutes after the command; rankd stops retrying a minute before that. */
const replyWithinMs = 14 * 60_000;
/**
 * A reply can reach Discord before the acknowledgment that it edits. For this long, rankd retries if Discord reports
 * that the message does not exist.
 */
const overtakenMs = 5_000;
const overtakenEveryMs = 500;
const longestPauseMs = 30_000;

export interface Reply {
  /** Never logged or stored, because anyone with the token can post as the application for 15 minutes. */
  token: string;
  content: string;
  /** The time (on `Clock.monotonic()`) at which the command arrived. */
  arrivedAt: number;
}

/**
 * Replaces Discord's "thinking" message with the reply. Returns the reason if the reply could not be delivered,
 * otherwise `undefined`.
 */
export async function sendReply(
  { sender, clock }: Pick<DaemonContext, 'sender' | 'clock'>,
  { application, apiBaseUrl }: Pick<DiscordConfig, 'application' | 'apiBaseUrl'>,
  { token, content, arrivedAt }: Reply,
  stop: AbortSignal,
): Promise<string | undefined> {
  const request = {
    ...discordRequest('PATCH', `${apiBaseUrl}/webhooks/${application}/${token}/messages/@original`),
    body: JSON.stringify({ content, allowed_mentions: { parse: [] } }),
    secrets: [token],
  };
  const firstAt = clock.monotonic();
  for (let tries = 0; ; tries += 1) {
    const answer = await sender.send(request, stop).catch(() => undefined);
    if (answer === undefined) return 'rankd was stopped';
    if (answer.isAnswered && answer.status >= 200 && answer.status < 300) return undefined;
    const pauseMs = pauseAfter(answer, { tries, elapsedMs: clock.monotonic() - firstAt });
    if (pauseMs === undefined || clock.monotonic() + pauseMs > arrivedAt + replyWithinMs) return inWords(answer);
    const isStopped = await clock.sleep(pauseMs, stop).then(
      () => false,
      () => true,
    );
    if (isStopped) return 'rankd was stopped';
  }
}

function discordRequest(method: 'PATCH' | 'PUT', address: string) {
  return {
    ...{ method, address, timeoutMs: 15_000 },
    headers: {
      'content-type': 'application/json',
      'user-agent': `DiscordBot (https://www.npmjs.com/package/rankd, ${version})`, // Discord requires this format
    },
    allowPrivate: address.startsWith('http:') ? ['127.0.0.0/8', '::1'] : [],
  };
}

/** Returns the wait before the next attempt, in milliseconds; `undefined` if a retry cannot help. */
function pauseAfter(
  answer: TargetAnswer,
  { tries, elapsedMs }: { tries: number; elapsedMs: number },
): number | undefined {
  const usual = Math.min(longestPauseMs, 1_000 * 2 ** tries);
  if (!answer.isAnswered || answer.status >= 500) return usual;
  const { code, retry_after } = jsonIn(answer.text);
  if (answer.status === 429) {
    const seconds = Number(retry_after ?? answer.header('retry-after') ?? Number.NaN);
    return Number.isFinite(seconds) && seconds >= 0 ? Math.ceil(seconds * 1_000) : usual;
  }
  const isOvertaken = answer.status === 404 && code === 10_015 && elapsedMs < overtakenMs;
  return isOvertaken ? overtakenEveryMs : undefined;
}

function jsonIn(text: string): { code?: unknown; retry_after?: unknown } {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

export function inWords(answer: TargetAnswer): string {
  if (!answer.isAnswered) return answer.error;
  return `status ${answer.status}${answer.text === '' ? '' : `: ${answer.text.slice(0, 300)}`}`;
}

/**
 * Registers rankd's commands in the Discord server, and removes the application's other commands there. Throws
 * `conflict`, with Discord's response in the message, if that fails.
 */
export async function registerCommands(
  { sender }: Pick<DaemonContext, 'sender'>,
  { application, server, apiBaseUrl }: Pick<DiscordConfig, 'application' | 'server' | 'apiBaseUrl'>,
  botToken: string,
): Promise<void> {
  const request = discordRequest('PUT', `${apiBaseUrl}/applications/${application}/guilds/${server}/commands`);
  const answer = await sender.send({
    ...request,
    headers: { ...request.headers, authorization: `Bot ${botToken}` },
    body: JSON.stringify(registeredCommands),
    secrets: [botToken],
  });
  if (answer.isAnswered && answer.status >= 200 && answer.status < 300) return;
  if (!answer.isAnswered) {
    throw new RankdError('conflict', `The commands could not be sent to Discord: ${inWords(answer)}.`, {
      hint: 'check that this machine can reach discord.com, then run this again',
    });
  }
  const hint = answer.status < 500 ? hints[answer.status] : 'try again in a few minutes: Discord has a problem';
  throw new RankdError('conflict', `Discord did not accept the commands: ${inWords(answer)}.`, {
    hint: hint ?? 'check that the application id and the server id match those in Discord',
  });
}

const hints: Readonly<Record<number, string>> = {
  401: 'copy the bot token again: Developer Portal, Bot page, Reset Token',
  403: 'add the application to the server first, with the link that rankd discord setup prints; then run this again',
  404: 'check the application id: Developer Portal, General Information page',
  429: 'wait a few minutes: Discord limits how often commands can be registered',
};
