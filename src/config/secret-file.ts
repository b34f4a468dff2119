import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../base/error-code.ts';
import { thisSystem } from '../base/system.ts';

/** What is in a file with one secret, or why it can't be read. */
export type SecretText = { text: string; warning?: string } | { problem: string };

/** Reads a file whose only content is a secret. Of one that systemd keeps (`isCredential`), the rights are as they should be. */
export function readSecretText(path: string, { isCredential }: { isCredential: boolean }): SecretText {
  try {
    const text = readFileSync(path, 'utf8').trim();
    const isOpen = thisSystem.hasModes && !isCredential && (statSync(path).mode & 0o044) !== 0;
    if (!isOpen) return { text };
    const command = thisSystem.commands.closeFile(path);
    return { text, warning: `${path} can be read by other users of this machine; run: ${command}` };
  } catch (error) {
    return { problem: `${path} ${whyUnreadable(error)}` };
  }
}

/** The path of a credential that systemd keeps for this service; `undefined` if there is none of this name. */
export function systemdCredential(env: Record<string, string | undefined>, name: string): string | undefined {
  const directory = env['CREDENTIALS_DIRECTORY'];
  const credential = directory && join(directory, name);
  return credential && existsSync(credential) ? credential : undefined;
}

function whyUnreadable(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'does not exist';
  if (code === 'EACCES' || code === 'EPERM') return 'may not be read by this user';
  if (code === 'EISDIR')
    return 'is a folder, and no file; Docker makes one if the file is missing: stop the container, remove the folder and put the file there';
  return `cannot be read (${code})`;
}
