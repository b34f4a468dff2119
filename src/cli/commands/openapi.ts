import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';

export function openapiCommand(program: Command, cli: Cli): void {
  program
    .command('openapi')
    .description('print the description of the HTTP API (OpenAPI 3.1), as the daemon serves it at /openapi.json')
    .addHelpText('after', examples('rankd openapi > openapi.json'))
    .action(async () => {
      const { openApiDocument } = await import('../../http/openapi/document.ts');
      cli.io.stdout(`${JSON.stringify(openApiDocument(), undefined, 2)}\n`);
    });
}
