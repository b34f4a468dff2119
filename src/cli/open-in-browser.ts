import type { Cli } from './cli.ts';

/** Opens an address in the browser of whoever runs the command. If there is none, the command says so, and ends well. */
export async function openInBrowser(cli: Cli, url: string): Promise<void> {
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
