import { resolve } from 'node:path';
import type { Command } from 'commander';
import { makeFile } from '../../base/files.ts';
import { scriptDocument } from '../../usecases/documents/game.ts';
import type { Cli } from '../cli.ts';
import { gameUrl, readGameScripts, secretOption, standalone, urlOption } from '../game-models.ts';
import { newFileName } from '../input/arguments.ts';
import { examples } from '../output/help.ts';

export function scriptCommand(program: Command, cli: Cli): void {
  program
    .command('script')
    .description("print the module with which your game's own scripts change ranks; it has your address in it")
    .option(...urlOption)
    .option(...secretOption)
    .option('--out <file>', 'write it to this new file, instead of printing it', newFileName)
    .addHelpText('after', examples('rankd script --url https://rankd.example.com', 'rankd script --out Rankd.luau'))
    .action((options: { url?: string; secret: string; out?: string }) => script(cli, options));
}

async function script(cli: Cli, options: { url?: string; secret: string; out?: string }): Promise<void> {
  const { config } = await cli.loadConfig();
  const values = { url: gameUrl(options.url, config, 'rankd script'), secret: options.secret };
  const text = standalone(readGameScripts(cli.io.packageDir).rankd, values);
  const { out } = options;
  if (out === undefined) cli.printAsIs(scriptDocument(values, { script: text }), text);
  else {
    const path = resolve(cli.io.cwd, out);
    makeFile({ path, text });
    cli.print(scriptDocument(values, { file: path }), path);
  }
  cli.say('Put it into a ModuleScript named Rankd in ServerScriptService; its first lines say how scripts use it.');
}
