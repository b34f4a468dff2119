import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import type { DiscordConfig } from '../../src/config/discord.ts';

export const discordIds = {
  application: '1100000000000000001',
  server: '2200000000000000002',
  hr: '3300000000000000003',
  trainers: '3300000000000000004',
  ann: '4400000000000000005',
  bob: '4400000000000000006',
};

/** The fake's private key. It is constant, so that every process can sign as the fake. */
const seed = Buffer.from('302e020100300506032b657004220420'.concat('7a'.repeat(32)), 'hex');
const privateKey = createPrivateKey({ key: seed, format: 'der', type: 'pkcs8' });
/** The fake's public key: 64 hex digits, as on the General Information page of an application on Discord. */
export const discordPublicKey = createPublicKey(privateKey)
  .export({ format: 'der', type: 'spki' })
  .subarray(-32)
  .toString('hex');

export function discordConfig(apiBaseUrl: string): DiscordConfig {
  const { application, server } = discordIds;
  const rows = (['hr', 'trainers'] as const).map((name) => ({ role: discordIds[name], key: name, at: '' }));
  return { application, server, publicKey: discordPublicKey, rows, apiBaseUrl };
}

/** Returns a `discord` section for `rankd.yaml` that uses the fake and accepts commands from one role. */
export function discordSection(apiBaseUrl: string): string {
  return `discord:
  application: "${discordIds.application}"
  public_key: "${discordPublicKey}"
  server: "${discordIds.server}"
  commands: [{ role: "${discordIds.hr}", key: hr }]
  api_base_url: ${apiBaseUrl}
`;
}

export interface SentCommand {
  name: string;
  options?: Record<string, string>;
  /**
   * The option that the user is typing. If it is set, Discord requests choices for it instead of running the command.
   */
  focused?: string;
  roles?: string[];
  userId?: string;
  nick?: string | null;
  fields?: Record<string, unknown>;
}

let count = 0;

/** Returns an interaction as Discord posts it, including fields that rankd ignores. */
export function interactionOf({ name, options = {}, focused, roles = [discordIds.hr], ...rest }: SentCommand) {
  const { userId = discordIds.ann, nick = 'Annie', fields } = rest;
  count += 1;
  return {
    id: String(5_500_000_000_000_000_000n + BigInt(Date.now() % 1e9) * 1_000n + BigInt(count)),
    application_id: discordIds.application,
    type: focused === undefined ? 2 : 4,
    token: `aW50ZXJhY3Rpb24-${process.pid}-${Date.now()}-${count}-secret_token`,
    version: 1,
    guild_id: discordIds.server,
    channel_id: '6600000000000000007',
    locale: 'en-US',
    entitlements: [],
    member: {
      nick,
      roles,
      permissions: '2147483647',
      user: { id: userId, username: 'ann_b', global_name: 'Ann B.', discriminator: '0' },
    },
    data: {
      id: '7700000000000000008',
      name,
      type: 1,
      options: Object.entries(options).map(([option, value]) => ({
        ...{ name: option, type: 3, value },
        ...(option === focused && { focused: true }),
      })),
    },
    ...fields,
  };
}

/** Returns the headers that Discord sends with a body, including a signature made at `at` (epoch milliseconds). */
export function signed(body: string, at = Date.now()): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000));
  const signature = sign(null, Buffer.from(timestamp + body), privateKey).toString('hex');
  return { 'x-signature-ed25519': signature, 'x-signature-timestamp': timestamp, 'content-type': 'application/json' };
}
