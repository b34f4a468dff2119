import { win32 } from 'node:path';
import { promisify } from 'node:util';

/** The access list of a file or folder on Windows as text (SDDL); `undefined` if Windows does not tell it. */
export async function readAccessList(
  path: string,
  env: Record<string, string | undefined>,
): Promise<string | undefined> {
  const { execFile } = await import('node:child_process');
  // By its whole path: Windows looks for a bare name in the current folder first.
  const powershell = win32.join(systemFolder(env), 'WindowsPowerShell', 'v1.0', 'powershell.exe');
  const line = ['-NoProfile', '-NonInteractive', '-Command', '(Get-Acl -LiteralPath $env:RANKD_ASKED_PATH).Sddl'];
  const told = promisify(execFile)(powershell, line, { env: { ...env, RANKD_ASKED_PATH: path }, timeout: timeoutMs });
  return told.then(
    ({ stdout }) => stdout.trim() || undefined,
    () => undefined,
  );
}

/** Where Windows keeps its own programs. */
export function systemFolder(env: Record<string, string | undefined>): string {
  return win32.join(env['SystemRoot'] ?? 'C:\\Windows', 'System32');
}

const timeoutMs = 20_000;
