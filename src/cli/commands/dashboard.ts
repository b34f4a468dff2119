import { Argument, type Command } from 'commander';
import { RankdError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import { askDashboardLink, askDashboardLogout } from '../../control/ask.ts';
import { linkDocument } from '../../usecases/documents/dashboard.ts';
import type { Cli } from '../cli.ts';
import { openInBrowser } from '../open-in-browser.ts';
import { examples } from '../output/help.ts';
import { whileWaiting } from '../output/terminal.ts';
import { notAnswering, requireAnswer } from './health.ts';

export function dashboardCommand(program: Command, cli: Cli): void {
  program
    .command('dashboard')
    .description('print a link to the page in the browser: what happened, who did it, take it back')
    .addArgument(
      new Argument('[logout]', 'log everybody out of the page, and make every link useless').choices(['logout']),
    )
    .option('--open', 'open it in the browser of this machine')
    .addHelpText('after', examples('rankd dashboard', 'rankd dashboard --open', 'rankd dashboard logout'))
    .action((does: 'logout' | undefined, { open = false }: { open?: boolean }) =>
      does === 'logout' ? logout(cli) : dashboard(cli, open),
    );
}

async function dashboard(cli: Cli, isOpened: boolean): Promise<void> {
  const outcome = await whileWaiting(cli.line, 'waiting for the daemon', () => ask(cli, askDashboardLink));
  if (outcome.state === 'refused') throw new RankdError(outcome.code, outcome.message, { hint: outcome.hint });
  if (isOpened) await openInBrowser(cli, outcome.url);
  cli.print(linkDocument(outcome), outcome.url);
  const elsewhere = outcome.tunnel === null ? '' : ` From elsewhere: ssh -L ${outcome.tunnel} THIS-MACHINE`;
  cli.say(`The link logs in once, within five minutes.${elsewhere}`);
}

async function logout(cli: Cli): Promise<void> {
  const { sessions } = await ask(cli, askDashboardLogout);
  cli.print({ sessions }, `${counted(sessions, 'session')} ended; no link from before works.`);
}

async function ask<Told>(
  cli: Cli,
  of: (asking: { dataDir: string; by: string }) => Promise<Told | undefined>,
): Promise<Told> {
  const { dataDir, by } = cli;
  await requireAnswer(cli);
  const told = await of({ dataDir, by });
  if (told === undefined) throw notAnswering();
  return told;
}
