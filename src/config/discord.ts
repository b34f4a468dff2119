import * as z from 'zod';
import { isKeyName } from '../core/api-key.ts';
import { isDiscordId } from '../core/discord-person.ts';
import { section, unique, url } from './values.ts';

const idError = 'a Discord id in quotes, such as "1100000000000000001"';

function discordId() {
  return z.string({ error: idError }).refine(isDiscordId, { error: idError });
}

const keyError = 'the public key of the application: 64 hex digits';
const nameError = 'the name of a key that was created with rankd key create NAME --for-discord';

const discordRow = z.strictObject(
  {
    role: discordId().describe('Id of a Discord role, in quotes.'),
    key: z
      .string({ error: nameError })
      .refine(isKeyName, { error: nameError })
      .describe('Name of the key for Discord whose rules apply to people with that role.'),
  },
  { error: 'a mapping with role and key' },
);

type DiscordRowSettings = z.output<typeof discordRow>;

const needed = ['application', 'public_key', 'server', 'commands'] as const;

export function discordSection() {
  return section({
    application: discordId()
      .optional()
      .describe("Application id, in quotes, from the General Information page of Discord's Developer Portal."),
    public_key: z
      .string({ error: keyError })
      .regex(/^[\da-f]{64}$/i, { error: keyError })
      .transform((text) => text.toLowerCase())
      .optional()
      .describe('Public key from the same page, 64 hex digits; it is not a secret.'),
    server: discordId().optional().describe('Id, in quotes, of the one Discord server whose commands rankd accepts.'),
    commands: z
      .array(discordRow, { error: 'a list of rows with role and key' })
      .min(1, { error: 'at least one row with role and key' })
      .check(unique<DiscordRowSettings>('discord.commands', ['role']))
      .optional()
      .describe(
        'Discord roles whose commands rankd accepts, each with a key; if a person has several, the first one applies.',
      ),
    api_base_url: url('https://discord.com/api/v10').describe("Address of Discord's API."),
  }).check(({ value, issues }) => {
    const missing = needed.filter((name) => value[name] === undefined);
    if (issues.length > 0 || missing.length === 0 || missing.length === needed.length) return;
    for (const name of missing) {
      const message = 'a value, because other settings of discord are set; `rankd discord setup` writes all of them';
      issues.push({ code: 'custom', path: [name], input: undefined, message });
    }
  });
}

export interface DiscordConfig {
  application: string;
  /** 64 hex digits. */
  publicKey: string;
  server: string;
  rows: Array<{ role: string; key: string; at: string }>;
  /** Without a trailing slash. */
  apiBaseUrl: string;
}

/** Returns `undefined` if commands on Discord are not configured. */
export function toDiscordConfig(
  { application, public_key, server, commands, api_base_url }: z.output<ReturnType<typeof discordSection>>,
  at: (path: readonly PropertyKey[]) => string,
): DiscordConfig | undefined {
  if (application === undefined || public_key === undefined || server === undefined || commands === undefined)
    return undefined;
  const rows = commands.map((row, index) => ({ ...row, at: at(['discord', 'commands', index, 'key']) }));
  return { application, publicKey: public_key, server, rows, apiBaseUrl: api_base_url };
}
