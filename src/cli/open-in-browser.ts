import { RankdError } from '../base/errors.ts';
import type { Cli } from './cli.ts';

/** Opens an address in the browser of the user who runs the command. If there is none, the command reports it and succeeds. */
export async function openInBrowser(cli: Cli, url: string): Promise<void> {
  const { config } = await cli.loadConfig();
  if (!isOfPage(url, config.dashboard.url)) {
    const message =
      'The daemon returned a link that is neither on this machine nor below dashboard.url, so it is not opened.';
    throw new RankdError('daemon_unavailable', message, { hint: 'rankd doctor' });
  }
  const { spawn } = await import('node:child_process');
  const [program, ...args] = cli.io.system.browser;
  const browser = spawn(program, [...args, url], { detached: true, stdio: 'ignore', env: cli.io.env });
  await new Promise<void>((resolve) => {
    browser.once('spawn', resolve).once('error', () => {
      cli.say(`No browser could be opened (${program}); open the link yourself.`);
      resolve();
    });
  });
  browser.unref();
}

/** The system's opener would run a file that a compromised daemon names. */
function isOfPage(link: string, pageUrl: string | undefined): boolean {
  const url = URL.parse(link);
  if (url === null || url.href !== link) return false;
  const isLoopback = url.protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  return isLoopback || url.origin === pageUrl;
}
