import { RankdError } from '../../base/errors.ts';
import type { Cli } from '../cli.ts';
import { ExitCode } from '../output/errors.ts';
import { jsonLine } from '../output/text.ts';

/**
 * Asks for confirmation unless -y is given. Throws `usage` if there is no terminal. If the answer is no, reports that
 * nothing was changed and exits with 130, as on Ctrl-C.
 */
export async function confirm(cli: Cli, question: string): Promise<void> {
  if (cli.options.yes) return;
  if (!cli.io.isTerminal) {
    throw new RankdError('usage', `${question} This needs confirmation, but there is no terminal.`, {
      hint: 'add -y, or run it on a terminal',
    });
  }
  const message = 'Nothing was changed.';
  cli.io.interruptMessage = message;
  const agreed = await isAgreed(cli, question, { preset: false });
  cli.io.interruptMessage = undefined;
  if (agreed) return;
  cli.io.stderr(cli.options.json ? jsonLine({ v: 1, success: false, message }) : `${message}\n`);
  throw new ExitCode(130);
}

export async function isAgreed(
  cli: Pick<Cli, 'ask' | 'io'>,
  question: string,
  { preset }: { preset: boolean },
): Promise<boolean> {
  for (;;) {
    const answer = (await cli.ask(`${question} [${preset ? 'Y/n' : 'y/N'}] `)).trim().toLowerCase();
    if (answer === '') return preset;
    if (['y', 'yes'].includes(answer)) return true;
    if (['n', 'no'].includes(answer)) return false;
    cli.io.stderr(`Type y for yes or n for no; Enter means ${preset ? 'yes' : 'no'}.\n`);
  }
}
