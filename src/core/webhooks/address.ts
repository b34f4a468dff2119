import { RankdError } from '../../base/errors.ts';
import type { WebhookKind } from './webhook.ts';

/** An address for deliveries. */
export interface WebhookAddress {
  /** As good as a password. */
  address: string;
  kind: WebhookKind;
  /** The part that may be shown. */
  shown: string;
}

/**
 * Parses an address from an operator and derives its kind, unless `kind` is given. The refusal never repeats the
 * address.
 */
export function readAddress(text: string, kind?: WebhookKind): WebhookAddress | { refusal: RankdError } {
  const address = text.trim();
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return no(
      'This is not the address of a webhook: such an address begins with https://.',
      'copy the whole address of the webhook',
    );
  }
  if (url.username !== '' || url.password !== '') {
    return no(
      'The address has a user name or a password in it.',
      'use an address without them; rankd signs what it sends',
    );
  }
  const isDiscord = discordHosts.has(url.host);
  if (/^discord\.gg$/.test(url.host) || (isDiscord && url.pathname.startsWith('/invite'))) {
    return no('This is an invitation to a Discord server, not a webhook.', whereInDiscord);
  }
  if (/(^|\.)slack\.com$/.test(url.host))
    return no('Slack takes messages of its own form, which rankd does not send.', standard);
  if (/(^|\.)guilded\.gg$/.test(url.host))
    return no('Guilded takes messages of its own form, which rankd does not send.', standard);
  const path = discordPath.exec(url.pathname);
  if ((isDiscord || kind === 'discord') && path === null) {
    return no(
      isDiscord
        ? 'This address leads to Discord, but not to a webhook.'
        : 'This is not the address of a webhook in Discord.',
      whereInDiscord,
    );
  }
  if (isDiscord && url.protocol === 'http:')
    return no('The address begins with http://; Discord needs https://.', whereInDiscord);
  const chosen = kind ?? (isDiscord ? 'discord' : 'standard');
  const id = path?.[1] ?? '';
  const shown =
    chosen === 'discord' ? `${url.host}/api/webhooks/${id.slice(0, 4)}…${id.slice(-3)}/***` : `${url.origin}/***`;
  return { address: url.href, kind: chosen, shown };
}

const discordHosts = new Set(['discord.com', 'discordapp.com', 'ptb.discord.com', 'canary.discord.com']);
const discordPath = /^\/api(?:\/v\d+)?\/webhooks\/(\d{5,25})\/[\w-]{10,200}\/?$/;
const whereInDiscord = 'in Discord: channel settings, Integrations, Webhooks, Copy Webhook URL';
const standard = 'use a Discord webhook, or a program of your own that takes Standard Webhooks';

function no(message: string, hint: string): { refusal: RankdError } {
  return { refusal: new RankdError('usage', message, { hint }) };
}
