import { resolve } from 'node:path';
import * as z from 'zod';
import { defaultEvents, eventGroups, flawOfEvents } from '../core/webhooks/event-types.ts';
import { isWebhookName, isWebhookSecret, readAddress } from '../core/webhooks/webhook.ts';
import type { WebhookDeclaration } from '../core/webhooks/webhook-changes.ts';
import type { Location, Problem } from './problem.ts';
import { readSecretText, Secret, type SecretText, systemdCredential } from './secret.ts';
import { filePath, oneOf, trueOrFalse } from './values.ts';

export interface DeclaredWebhook extends WebhookDeclaration {
  /** Secret, because anyone who knows the address can send to it. */
  address: Secret;
  /** Signs the requests; absent for Discord. */
  secret?: Secret;
  /** `file:line:col` of the webhook's name and of its address file. */
  at: { name: string | undefined; url_file: string | undefined };
}

const nameError = '1 to 40 of the characters a-z, 0-9 and -';
const eventError = `${eventGroups.join(', ')}, or the name of a single event (docs/webhooks.md)`;
const mentionError = 'the id of a Discord role, in quotes, such as "1482005551234567890"';

export const declaredWebhook = z.strictObject(
  {
    name: z
      .string({ error: nameError })
      .refine(isWebhookName, { error: nameError })
      .describe('Name of the webhook in commands.'),
    url_file: filePath().describe('File with the address, which is a secret.'),
    secret_file: filePath()
      .optional()
      .describe('File with the secret that signs requests to a program: whsec_ and base64. Discord needs none.'),
    kind: oneOf(['discord', 'standard'])
      .optional()
      .describe('Kind of target; without it, rankd detects the kind from the address.'),
    events: z
      .array(
        z.string({ error: eventError }).refine((name) => flawOfEvents(name) === undefined, { error: eventError }),
        { error: `a list of ${eventError}` },
      )
      .optional()
      .describe('Events to send; without it, changes and alarms to Discord, and all events to a program.'),
    mention: z
      .string({ error: mentionError })
      .regex(/^\d{5,25}$/, { error: mentionError })
      .optional()
      .describe('Id of the Discord role that alarms mention, in quotes.'),
    for_games: trueOrFalse()
      .default(false)
      .describe(
        'Whether a game may select the webhook by sending its address; without `events`, the webhook then receives no other events.',
      ),
  },
  { error: 'a mapping with name and url_file' },
);

export type DeclaredWebhookSettings = z.output<typeof declaredWebhook>;

interface Sources {
  /** The folder against which relative paths are resolved. */
  folder: string;
  env: Record<string, string | undefined>;
  locationOf(...path: PropertyKey[]): Location | undefined;
}

interface Targets {
  targets: DeclaredWebhook[];
  problems: Problem[];
  warnings: string[];
}

/** Reads the files named in `webhooks.targets`. The problems contain neither addresses nor secrets. */
export function readTargets(entries: readonly DeclaredWebhookSettings[], sources: Sources): Targets {
  const read = entries.map((entry, index) => readTarget(entry, index, sources));
  const targets = read.flatMap(({ target }) => target ?? []);
  const twins = read.flatMap(({ target }, index): Problem[] => {
    const first = targets.find(({ address }) => target?.address.equals(address));
    if (target === undefined || first === target) return [];
    return [{ ...sources.locationOf(index, 'url_file'), text: `has the same address as ${first?.name}` }];
  });
  return {
    targets,
    problems: [...read.flatMap(({ problems }) => problems), ...twins],
    warnings: read.flatMap(({ warnings }) => warnings),
  };
}

interface ReadTarget {
  target?: DeclaredWebhook;
  problems: Problem[];
  warnings: string[];
}

type FileField = 'url_file' | 'secret_file';

function readTarget(entry: DeclaredWebhookSettings, index: number, { folder, env, locationOf }: Sources): ReadTarget {
  const { name, kind, mention, for_games: isForGames } = entry;
  const problem = (field: FileField | 'name', text: string): ReadTarget => ({
    problems: [{ ...locationOf(index, field), text }],
    warnings: [],
  });
  const textOf = (field: FileField) => secretTextOf(entry, field, { folder, env });
  const url = textOf('url_file');
  if ('problem' in url) return problem('url_file', url.problem);
  const read = readAddress(url.text, kind);
  if ('refusal' in read) {
    const { message, hint } = read.refusal;
    return problem('url_file', `${entry.url_file}: ${message.replace(/\.$/, '')}; ${hint}`);
  }
  const isSigned = read.kind === 'standard';
  const secret = isSigned ? textOf('secret_file') : { text: '' };
  if ('problem' in secret) return problem(entry.secret_file === undefined ? 'name' : 'secret_file', secret.problem);
  if (isSigned && !isWebhookSecret(secret.text))
    return problem(
      'secret_file',
      'the file does not contain a secret; expected whsec_ and 24 to 64 bytes in base64, as from openssl rand -base64 32',
    );
  const events = entry.events ?? (isForGames ? [] : [...defaultEvents[read.kind]]);
  const at = (field: 'name' | 'url_file') => locationOf(index, field)?.at;
  const declaration = {
    ...{ name, kind: read.kind, shown: read.shown, events: [...new Set(events)] },
    ...(mention !== undefined && { mention }),
    ...(isForGames && { isForGames }),
    declaredIn: (locationOf(index)?.at ?? '').replace(/:\d+$/, ''),
  };
  const target = {
    ...{ ...declaration, address: new Secret(read.address), at: { name: at('name'), url_file: at('url_file') } },
    ...(isSigned && { secret: new Secret(secret.text) }),
  };
  return { target, problems: [], warnings: [url, secret].flatMap(({ warning }) => warning ?? []) };
}

/**
 * Prefers the systemd credential to the named file, so that the daemon and its user's commands can share one
 * configuration.
 */
function secretTextOf(
  entry: DeclaredWebhookSettings,
  field: FileField,
  { folder, env }: Pick<Sources, 'folder' | 'env'>,
): SecretText {
  const credential = systemdCredential(env, `webhook_${entry.name}_${field === 'url_file' ? 'url' : 'secret'}`);
  if (credential !== undefined) return readSecretText(credential, { checksMode: false });
  const path = entry[field];
  if (path === undefined)
    return {
      problem: 'a webhook to a program needs a secret that signs the requests: name its file in secret_file',
    };
  if (/^(https?:|whsec_)/i.test(path))
    return { problem: 'looks like the secret itself; give the path of a file with the secret' };
  return readSecretText(resolve(folder, path), { checksMode: true });
}
