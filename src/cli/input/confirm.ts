import { RankdError } from '../../base/errors.ts';
import type { Cli } from '../cli.ts';

/** Asks on a terminal unless -y is given. Throws `usage` if nobody can answer, or if the answer is no. */
export async function confirm(cli: Cli, question: string): Promise<void> {
  if (cli.options.yes) return;
  if (!cli.io.isTerminal) {
    throw new RankdError('usage', `${question} Nobody can answer here.`, { hint: 'run it on a terminal, or add -y' });
  }
  const answer = await cli.ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim()))
    throw new RankdError('usage', 'Nothing was done.', { hint: 'answer y to go on' });
}
