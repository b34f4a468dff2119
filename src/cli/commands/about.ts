import type { Command } from 'commander';
import { version } from '../../base/version.ts';
import { versionDocument } from '../../usecases/documents/installation.ts';
import type { Cli } from '../cli.ts';
import { examples, examplesOf } from '../output/help.ts';
import { manPage } from '../output/man-page.ts';

export function versionCommand(program: Command, cli: Cli): void {
  program
    .command('version')
    .description('print the version of rankd and of Node.js')
    .addHelpText('after', examples('rankd version', 'rankd version --json'))
    .action(() => {
      const node = cli.io.nodeVersion;
      cli.print(versionDocument(node), `rankd ${version} (Node.js ${node})`);
    });
}

export function manCommand(program: Command, cli: Cli): void {
  program
    .command('man')
    .description('print the manual page')
    .addHelpText(
      'after',
      examples('rankd man', 'rankd man | man -l -', 'rankd man > /usr/local/share/man/man1/rankd.1'),
    )
    .action(() => {
      const page = manPage(program, examplesOf);
      cli.printAsIs({ page }, page);
    });
}

export function openapiCommand(program: Command, cli: Cli): void {
  program
    .command('openapi')
    .description('print the description of the HTTP API (OpenAPI 3.1), as the daemon serves it at /openapi.json')
    .addHelpText('after', examples('rankd openapi > openapi.json'))
    .action(async () => {
      const [{ openApiDocument }, { routes }] = await Promise.all([
        import('../../http/openapi/document.ts'),
        import('../../http/routes/all.ts'),
      ]);
      cli.io.stdout(`${JSON.stringify(openApiDocument(routes), undefined, 2)}\n`);
    });
}
