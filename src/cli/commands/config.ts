import { openRanking } from '../../app.ts';
import { asRankdError, isRankdError, RankdError } from '../../base/errors.ts';
import { ScratchDirectory } from '../../base/files.ts';
import { suggest } from '../../base/text.ts';
import type { Config } from '../../config/config.ts';
import type { Origin } from '../../config/layers.ts';
import { searchPath, trustedConfig } from '../../config/locate.ts';
import { ConfigError } from '../../config/problem.ts';
import { withoutKeys } from '../../core/api-key.ts';
import { roleEntries } from '../../core/role-settings.ts';
import { callWithin } from '../../ports/platform.ts';
import { strayRoles } from '../../usecases/group/check-group.ts';
import type { Cli } from '../cli.ts';
import { argument, command, commandGroup, flag } from '../command.ts';
import { settingText } from '../output/help.ts';
import { table } from '../output/table.ts';
import { whileWaiting } from '../output/terminal.ts';

const groupTimeoutMs = 5_000;

export const configCommands = commandGroup({
  name: 'config',
  about: 'the current configuration',
  examples: ['rankd config check', 'rankd config show --origin'],
  commands: [
    command({
      name: 'check',
      about: 'report all problems in the configuration, and check its ranks and roles against the group',
      usage: '[options]',
      args: [argument('[file]', '')], // rejected with a hint to use --config
      options: { offline: flag('--offline', 'skip the checks that need Roblox') },
      examples: ['rankd config check', 'rankd config check --config /etc/rankd/rankd.yaml'],
      run: check,
    }),
    command({
      name: 'show',
      about: 'every setting with its value; secrets are not shown',
      options: { origin: flag('--origin', 'also show where each value comes from and which values it overrides') },
      examples: ['rankd config show', 'rankd config show --origin', 'rankd config show --json'],
      run: show,
    }),
    command({
      name: 'get',
      about: 'the value of one setting; a secret is not shown',
      args: [argument('<setting>', 'the name of the setting, such as server.port')],
      examples: ['rankd config get server.port', 'rankd config get policy.max_rank --json'],
      run: get,
    }),
    command({
      name: 'path',
      about: 'print the configuration file in use, or where rankd looks for one',
      examples: ['rankd config path'],
      run: path,
    }),
    command({
      name: 'schema',
      about: 'print the JSON Schema of rankd.yaml, for editors',
      examples: ['rankd config schema > rankd.schema.json'],
      run: async (cli) => {
        const { jsonSchema } = await import('../../config/settings.ts');
        cli.io.stdout(`${JSON.stringify(jsonSchema(), undefined, 2)}\n`);
      },
    }),
  ],
});

async function check(cli: Cli, named: string | undefined, { offline }: { offline: boolean }): Promise<void> {
  if (named !== undefined) {
    throw new RankdError('usage', 'The file to check must be given with --config.', {
      hint: withoutKeys(`rankd config check --config ${cli.io.system.quote(named)}`),
    });
  }
  const { config, file, warnings } = await cli.loadConfig().catch((error) => {
    throw cli.options.json ? error : withExcerpts(error);
  });
  const what = file ?? 'no configuration file: environment variables and defaults';
  const isAsked = config.platform.kind === 'simulated' || !offline;
  const misfits = isAsked && (namesRoles(config) || hasGroupFile(config)) ? await misfitsOf(cli, config) : [];
  for (const misfit of misfits) cli.say(`warning: ${misfit}`);
  cli.print(checkedConfigDocument(file, [...warnings, ...misfits]), `ok: ${what}`);
}

function namesRoles({ group, policy }: Config): boolean {
  return roleEntries({ ...policy, ladder: group.ladder, suspensionRole: policy.suspension.role }).length > 0;
}

function hasGroupFile({ platform }: Config): boolean {
  return platform.kind === 'simulated' && platform.groupFile !== undefined;
}

/**
 * Returns warnings about settings that do not fit the group. Throws `config_invalid` for problems that would stop
 * `serve`.
 */
async function misfitsOf(cli: Cli, config: Config): Promise<string[]> {
  using scratch = new ScratchDirectory();
  await using app = await openRanking({ config, dataDir: scratch.path });
  if (config.store === undefined) await app.store.updateMeanings(app.group.title, await storedMeanings(cli, app.group));
  using call = callWithin(app.clock, groupTimeoutMs, 'operator');
  try {
    const { misfits, stray } = await whileWaiting(cli.line, 'waiting for Roblox', () => strayRoles(app, call));
    return [...misfits.map(({ message, fix }) => `${message} Fix: ${fix}`), ...stray];
  } catch (error) {
    if (isRankdError(error, 'config_invalid')) throw error;
    return [`ranks and roles were not checked against the group: ${asRankdError(error).message}`];
  }
}

/**
 * Returns an update that copies the stored meanings of role names to the scratch store, so that the check resolves the
 * names in the settings as the daemon does.
 */
async function storedMeanings(cli: Cli, { title }: { title: string }) {
  const kept = (await cli.operations.exists()) ? await cli.withStore(({ store }) => store.findMeanings(title)) : [];
  return () => ({ change: kept, events: [] });
}

function withExcerpts(error: unknown): unknown {
  return error instanceof ConfigError ? new RankdError(error.code, error.withExcerpts, { hint: error.hint }) : error;
}

async function show(cli: Cli, { origin }: { origin: boolean }): Promise<void> {
  const { file, origins } = await cli.loadConfig();
  const rows = [...origins].map(([name, one]) => [
    name,
    settingText(one.value),
    ...(origin ? [originText(one), shadowedBy(one)] : []),
  ]);
  const headings = ['setting', 'value', ...(origin ? ['origin', 'shadows'] : [])];
  cli.print(settingsDocument(file, origins), table(headings, rows));
}

async function get(cli: Cli, name: string): Promise<void> {
  const { file, origins } = await cli.loadConfig();
  const found = origins.get(name);
  if (found === undefined) {
    const meant = suggest(name, origins.keys());
    throw new RankdError('usage', withoutKeys(`There is no setting ${name}.`), {
      hint: meant === undefined ? 'rankd config show' : `rankd config get ${meant}`,
    });
  }
  const [setting] = settingsDocument(file, new Map([[name, found]])).settings;
  cli.print({ setting }, found.value === undefined ? '' : settingText(found.value));
}

async function path(cli: Cli): Promise<void> {
  const found = trustedConfig(cli.configSources);
  const searched = searchPath(cli.configSources).map((candidate) => candidate.path);
  cli.print(configFileDocument(found?.path, searched), found?.path ?? '');
  if (found === undefined) cli.say(`There is no configuration file. rankd looks for it in:\n${searched.join('\n')}`);
}

function originText({ source, at }: Origin): string {
  return at === undefined ? source : `${source} ${at}`;
}

function shadowedBy({ shadows = [] }: Origin): string {
  return shadows.map((one) => `${originText(one)} (${settingText(one.value)})`).join(', ') || '-';
}

function checkedConfigDocument(file: string | undefined, warnings: string[]) {
  return { file: file ?? null, warnings };
}

function settingsDocument(file: string | undefined, origins: ReadonlyMap<string, Origin>) {
  const settings = [...origins].map(([name, { shadows = [], ...origin }]) => ({
    name,
    ...originDocument(origin),
    shadows: shadows.map(originDocument),
  }));
  return { file: file ?? null, settings };
}

function configFileDocument(file: string | undefined, searched: string[]) {
  return { file: file ?? null, searched };
}

function originDocument({ value, source, at }: Origin) {
  return { value: value ?? null, source, at: at ?? null };
}
