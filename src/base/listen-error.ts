import { codeOf } from './error-code.ts';
import { RankdError } from './errors.ts';

/** Why there is no listening on an address, as the operator can act on it. Anything else is returned as it is. */
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
    case 'ENOTFOUND':
      return new RankdError('config_invalid', `${host} is not an address of this machine.`, {
        cause,
        hint: `set ${section}.host to 127.0.0.1, or to 0.0.0.0 for all addresses`,
      });
    default:
      return cause;
  }
}
