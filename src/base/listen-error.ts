import { codeOf } from './error-code.ts';
import { RankdError } from './errors.ts';

/** The error of a listener in words that the operator can act on. A mistake in rankd is returned as it is. */
export function listenError(
  cause: unknown,
  {
    host,
    port,
    hint,
    section,
  }: { host: string; port: number; hint: string; section: 'server' | 'metrics' | 'dashboard' },
): unknown {
  const where = `${host}:${port}`;
  switch (codeOf(cause)) {
    case 'EADDRINUSE':
      return new RankdError('port_taken', `Another program already listens on ${where} (${section}.port).`, {
        cause,
        hint: `stop it, or choose another port: ${hint}`,
      });
    case 'EACCES':
      return new RankdError('no_permission', `This user may not listen on ${where} (${section}.port).`, {
        cause,
        hint: `choose a port from 1024 up: ${hint}`,
      });
    case 'EADDRNOTAVAIL':
    case 'EAI_AGAIN':
    case 'ENOTFOUND':
      return new RankdError('config_invalid', `${host} is not an address of this machine.`, {
        cause,
        hint: `set ${section}.host to 127.0.0.1, or to 0.0.0.0 for all addresses`,
      });
    case 'EINVAL':
    case 'EAFNOSUPPORT':
      return new RankdError('config_invalid', `This machine can't listen on ${host}.`, {
        cause,
        hint: host.toLowerCase().startsWith('fe80:')
          ? `a link-local address needs its interface: set ${section}.host to ${host}%eth0, with the name that the machine has for it`
          : `set ${section}.host to 127.0.0.1, or to 0.0.0.0 for all addresses`,
      });
    default:
      return isSystemError(cause)
        ? new RankdError('config_invalid', `rankd can't listen on ${where} (${codeOf(cause)}).`, {
            cause,
            hint: `check ${section}.host and ${section}.port`,
          })
        : cause;
  }
}

/** An error of the operating system has its name for the call that failed; a mistake in rankd has none. */
function isSystemError(cause: unknown): boolean {
  return cause instanceof Error && 'syscall' in cause;
}
