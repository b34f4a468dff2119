import type { Command } from 'commander';
import { version } from '../../base/version.ts';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';

export function versionCommand(program: Command, cli: Cli): void {
  program
    .command('version')
    .description('print the version of rankd and of Node.js')
    .addHelpText('after', examples('rankd version', 'rankd version --json'))
    .action(() => {
      const node = cli.io.nodeVersion;
      cli.print({ version, node }, `rankd ${version} (Node.js ${node})`);
    });
}
