import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { examples, examplesOf } from '../output/help.ts';
import { manPage } from '../output/man-page.ts';

export function manCommand(program: Command, cli: Cli): void {
  program
    .command('man')
    .description('print the manual page')
    .addHelpText('after', examples('rankd man | man -l -', 'rankd man > /usr/local/share/man/man1/rankd.1'))
    .action(() => {
      const page = manPage(program, examplesOf);
      cli.printAsIs({ page }, page);
    });
}
