import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Io } from '../io.ts';

/** `config/rankd.service` with the paths of this machine. */
export function unitFor({ command, packageDir }: Pick<Io, 'command' | 'packageDir'>): string {
  const unit = readFileSync(join(packageDir, 'config', 'rankd.service'), 'utf8');
  return unit.replaceAll(/^(Exec\w+=)\S+/gm, (_, name: string) => name + command.map(quoted).join(' '));
}

/** The part of the command that the unit's ProtectHome= and PrivateTmp= hide from the service; `undefined` if there is none. */
export function hiddenPath(command: readonly string[]): string | undefined {
  return command.find((path) => /^\/(home|root|run\/user|tmp|var\/tmp)\//.test(path));
}

/** One word of a command line. Source: systemd.service(5), "Command lines". */
function quoted(word: string): string {
  const escaped = word.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /[\s"'\\;]/.test(escaped) ? `"${escaped.replaceAll(/["\\]/g, '\\$&')}"` : escaped;
}
