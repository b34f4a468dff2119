import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { codeOf } from '../base/errors.ts';
import { readAtMost } from '../base/read-file.ts';
import { ownUid, thisSystem } from '../base/system.ts';

/** The variables for secrets, which must not be in the file. */
export const keyVariable = 'RANKD_PLATFORM_API_KEY';
export const passwordVariable = 'RANKD_STORE_PASSWORD';
export const erasureVariable = 'RANKD_ERASURE_SECRET';

/**
 * Hosting platforms assign the port in these variables: Heroku, Render, Railway and others in PORT, and bot panels in
 * SERVER_PORT, which bin/panel.js copies to PORT.
 */
export const [portVariable, panelPortVariable] = ['PORT', 'SERVER_PORT'];

export const keyFile = 'platform.api_key_file';

const redacted = '[redacted]';

/** Only `reveal` returns the value; printing, logging or serializing it gives `[redacted]`. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  equals(other: Secret): boolean {
    return this.#value === other.#value;
  }

  toString(): string {
    return redacted;
  }

  toJSON(): string {
    return redacted;
  }

  [inspect.custom](): string {
    return redacted;
  }
}

export type SecretText = { text: string; warning?: string } | { problem: string };

/** No secret or certificate bundle is this large. */
const maxBytes = 1_000_000;

/** Reads a file that contains only a secret, or certificates. With `checksMode`, warns if other users can read it. */
export function readSecretText(path: string, { checksMode }: { checksMode: boolean }): SecretText {
  try {
    const text = readAtMost(path, maxBytes).toString().trim();
    const { mode, uid } = statSync(path);
    const isOpen = thisSystem.hasModes && checksMode && (mode & 0o044) !== 0;
    if (!isOpen) return { text };
    // `chmod 600` alone would lock rankd out of a file that belongs to another user.
    const first = uid === ownUid() ? '' : 'give it to the user who runs rankd, then ';
    const command = thisSystem.commands.restrictFile(path);
    return { text, warning: `${path} can be read by other users of this machine; ${first}run: ${command}` };
  } catch (error) {
    return { problem: `${path} ${readFailure(error)}` };
  }
}

/**
 * Reads a secret from the first of these that is set: the variable, the systemd credential, the file. Trims it, because
 * Kubernetes secrets often end with a line break. `what` names the secret in messages.
 */
export function findSecret(
  env: Record<string, string | undefined>,
  {
    variable,
    credential: name,
    file,
    what,
  }: { variable: string; credential: string; file: string | undefined; what: string },
): { text?: string; warning?: string } | { problem: string } {
  const given = env[variable]?.trim();
  if (given) return isQuoted(given) ? { problem: `${variable} is in quotes; remove them` } : { text: given };
  const credential = systemdCredential(env, name);
  const path = credential ?? file;
  if (path === undefined) return {};
  // systemd sets the mode of its credentials
  const read = readSecretText(path, { checksMode: credential === undefined });
  if ('problem' in read) return read;
  if (read.text === '') return { problem: `${path} is empty; put the ${what} into it` };
  return isQuoted(read.text) ? { problem: `the text in ${path} is in quotes; remove them` } : read;
}

/** Detects quotes that a shell would have removed. */
export function isQuoted(text: string): boolean {
  return /^(["'`]).*\1$/s.test(text);
}

function readFailure(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'does not exist';
  if (code === 'EACCES' || code === 'EPERM') return 'cannot be read by this user';
  if (code === 'EISDIR')
    return 'is a folder, not a file; name a file, or, if Docker created the folder because the file was missing, stop the container, remove the folder and put the file there';
  if (code === 'EFBIG') return `has more than ${maxBytes} bytes, so it is probably the wrong file`;
  return `cannot be read (${code})`;
}

export function systemdCredential(env: Record<string, string | undefined>, name: string): string | undefined {
  const directory = env['CREDENTIALS_DIRECTORY'];
  const credential = directory && join(directory, name);
  return credential && existsSync(credential) ? credential : undefined;
}
