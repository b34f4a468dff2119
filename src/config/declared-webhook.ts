import { resolve } from 'node:path';
import { crypto } from '../base/node-modules.ts';
import { readAddress } from '../core/webhooks/address.ts';
import type { WebhookDeclaration } from '../core/webhooks/declared-webhooks.ts';
import { defaultEvents } from '../core/webhooks/event-types.ts';
import { isWebhookSecret } from '../core/webhooks/signature.ts';
import type { DeclaredWebhookSettings } from './declared-webhook-schema.ts';
import type { Location, Problem } from './problem.ts';
import { Secret } from './secret.ts';
import { readSecretText, systemdCredential } from './secret-file.ts';

/** A webhook that the configuration declares. */
export interface DeclaredWebhook extends WebhookDeclaration {
  /** As good as a password. */
  address: Secret;
  /** Signs what is delivered; absent for Discord. */
  secret?: Secret;
  /** Where the file names it, and the file with its address: `file:line:col`. */
  at: { name: string | undefined; url_file: string | undefined };
}

/** Tells another address or secret, and nothing of it. */
export function fingerprintOf({ address, secret }: Pick<DeclaredWebhook, 'address' | 'secret'>): string {
  return crypto()
    .hash('sha256', `${address.reveal()}\n${secret?.reveal() ?? ''}`)
    .slice(0, 12);
}

interface Reading {
  /** The folder that relative paths start from. */
  folder: string;
  env: Record<string, string | undefined>;
  locationOf(...path: PropertyKey[]): Location | undefined;
}

/** Reads what the entries of `webhooks.targets` name, or tells what is wrong with it. Neither an address nor a secret is ever repeated. */
export function readTargets(
  entries: readonly DeclaredWebhookSettings[],
  reading: Reading,
): { targets: DeclaredWebhook[]; problems: Problem[]; warnings: string[] } {
  const read = entries.map((entry, index) => readTarget(entry, index, reading));
  const targets = read.flatMap(({ target }) => target ?? []);
  const twins = read.flatMap(({ target }, index): Problem[] => {
    const first = targets.find(({ address }) => target?.address.equals(address));
    if (target === undefined || first === target) return [];
    return [{ ...reading.locationOf(index, 'url_file'), text: `has the address of ${first?.name}` }];
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

function readTarget(entry: DeclaredWebhookSettings, index: number, { folder, env, locationOf }: Reading): ReadTarget {
  const { name, kind, mention, for_games: isForGames } = entry;
  const problemAt = (field: FileField | 'name', text: string): Problem => ({ ...locationOf(index, field), text });
  const textOf = (field: FileField) => secretTextOf(entry, field, { folder, env });
  const url = textOf('url_file');
  if ('problem' in url) return { problems: [problemAt('url_file', url.problem)], warnings: [] };
  const read = readAddress(url.text, kind);
  if ('refusal' in read) {
    const { message, hint } = read.refusal;
    return { problems: [problemAt('url_file', `${entry.url_file}: ${message} ${hint}`)], warnings: [] };
  }
  const isSigned = read.kind === 'standard';
  const secret = isSigned ? textOf('secret_file') : { text: '' };
  if ('problem' in secret) {
    const field = entry.secret_file === undefined ? 'name' : 'secret_file';
    return { problems: [problemAt(field, secret.problem)], warnings: [] };
  }
  if (isSigned && !isWebhookSecret(secret.text))
    return {
      problems: [problemAt('secret_file', 'the file holds no secret: whsec_ and 24 to 64 bytes in base64')],
      warnings: [],
    };
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

/** A systemd credential goes before the named file, so the daemon and the commands of its user can share one configuration. */
function secretTextOf(
  entry: DeclaredWebhookSettings,
  field: FileField,
  { folder, env }: Pick<Reading, 'folder' | 'env'>,
) {
  const credential = systemdCredential(env, `webhook_${entry.name}_${field === 'url_file' ? 'url' : 'secret'}`);
  if (credential !== undefined) return readSecretText(credential, { isCredential: true });
  const path = entry[field];
  if (path === undefined)
    return { problem: 'a program needs a secret that signs what it is sent: name its file in secret_file' };
  if (/^(https?:|whsec_)/i.test(path))
    return { problem: 'looks like the secret itself; it must be the path of a file with it' };
  return readSecretText(resolve(folder, path), { isCredential: false });
}
