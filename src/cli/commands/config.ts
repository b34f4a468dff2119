import type { Command } from 'commander';
import { RankdError } from '../../base/errors.ts';
import { locateConfig, searchPath } from '../../config/locate.ts';
import type { Origin } from '../../config/origin.ts';
import { ConfigError } from '../../config/problem.ts';
import { withoutKeys } from '../../core/api-key.ts';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';
import { table } from '../output/table.ts';
import { settingText } from '../output/wording.ts';

export function configCommands(program: Command, cli: Cli): void {
  const config = program
    .command('config')
    .description('the configuration that is in force')
    .addHelpText('after', examples('rankd config check', 'rankd config show --origin'));
  config
    .command('check')
    .description('show every problem of the configuration at once')
    .addHelpText('after', examples('rankd config check', 'rankd config check --config /etc/rankd/rankd.yaml'))
    .allowExcessArguments()
    .action((_options, { args: [file] }: Command) => check(cli, file));
  config
    .command('show')
    .description('every setting with its value; secrets are not shown')
    .option('--origin', 'also show where each value comes from, and what it shadows')
    .addHelpText('after', examples('rankd config show', 'rankd config show --origin', 'rankd config show --json'))
    .action((options: { origin?: boolean }) => show(cli, options));
  config
    .command('path')
    .description('print the file that is read, or where rankd looks for one')
    .addHelpText('after', examples('rankd config path'))
    .action(() => path(cli));
  config
    .command('schema')
    .description('print the JSON Schema of rankd.yaml, for editors')
    .addHelpText('after', examples('rankd config schema > rankd.schema.json'))
    .action(() => schema(cli));
}

async function check(cli: Cli, named: string | undefined): Promise<void> {
  if (named !== undefined) {
    throw new RankdError('usage', 'The file to check is named with --config.', {
      hint: withoutKeys(`rankd --config ${named} config check`),
    });
  }
  const { file, warnings } = await cli.loadConfig().catch((error) => {
    throw cli.options.json ? error : withExcerpts(error);
  });
  const what = file ?? 'no configuration file: all settings have their defaults';
  cli.print({ file: file ?? null, warnings }, `ok: ${what}`);
}

/** The error with the lines of the file that are wrong. */
function withExcerpts(error: unknown): unknown {
  return error instanceof ConfigError ? new RankdError(error.code, error.withExcerpts, { hint: error.hint }) : error;
}

async function show(cli: Cli, { origin }: { origin?: boolean }): Promise<void> {
  const { file, origins } = await cli.loadConfig();
  const rows = [...origins].map(([name, one]) => [
    name,
    settingText(one.value),
    ...(origin ? [placeOf(one), shadowedBy(one)] : []),
  ]);
  const settings = [...origins].map(([name, { shadows = [], ...one }]) => ({
    name,
    ...originDocument(one),
    shadows: shadows.map(originDocument),
  }));
  cli.print(
    { file: file ?? null, settings },
    table(['setting', 'value', ...(origin ? ['origin', 'shadows'] : [])], rows),
  );
}

async function path(cli: Cli): Promise<void> {
  const { env, cwd } = cli.io;
  const found = locateConfig({ configFile: cli.options.config, env, cwd });
  const searched = searchPath({ env, cwd }).map((place) => place.path);
  cli.print({ file: found?.path ?? null, searched }, found?.path ?? '');
  if (found === undefined) cli.say(`There is no configuration file. It is looked for in:\n${searched.join('\n')}`);
}

async function schema(cli: Cli): Promise<void> {
  const { jsonSchema } = await import('../../config/settings.ts');
  cli.io.stdout(`${JSON.stringify(jsonSchema(), undefined, 2)}\n`);
}

function originDocument({ value, source, at }: Origin) {
  return { value: value ?? null, source, at: at ?? null };
}

function placeOf({ source, at }: Origin): string {
  return at === undefined ? source : `${source} ${at}`;
}

/** The values that it overrides. */
function shadowedBy({ shadows = [] }: Origin): string {
  return shadows.map((one) => `${placeOf(one)} (${settingText(one.value)})`).join(', ') || '-';
}
