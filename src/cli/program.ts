import { Command, CommanderError } from 'commander';
import { asRankdError, RankdError } from '../base/errors.ts';
import { inWords } from '../base/files.ts';
import { suggest } from '../base/text.ts';
import { version } from '../base/version.ts';
import { locateConfig, requireNamed } from '../config/locate.ts';
import { Cli } from './cli.ts';
import { completionCommand, manCommand, openapiCommand, versionCommand } from './commands/about.ts';
import { auditCommands } from './commands/audit.ts';
import { configCommands } from './commands/config.ts';
import { dashboardCommand, healthCommand, reloadCommand } from './commands/daemon.ts';
import { backupCommand, databaseCommands, restoreCommand } from './commands/database.ts';
import { discordCommands } from './commands/discord.ts';
import { doctorCommand } from './commands/doctor.ts';
import { forgetCommand } from './commands/forget.ts';
import { gameCommands, scriptCommand } from './commands/game.ts';
import { groupCommands } from './commands/group.ts';
import { historyCommands } from './commands/history.ts';
import { initCommand } from './commands/init.ts';
import { keyCommands } from './commands/key.ts';
import { rankCommands } from './commands/rank.ts';
import { roleCommands } from './commands/role.ts';
import { serveCommand } from './commands/serve.ts';
import { serviceCommands } from './commands/service.ts';
import { statusCommand } from './commands/status.ts';
import { storeCommands } from './commands/store.ts';
import { suspensionCommands } from './commands/suspension.ts';
import { webhookCommands } from './commands/webhook.ts';
import { whitelistCommands } from './commands/whitelist.ts';
import { workspaceCommands } from './commands/workspace.ts';
import { answerShell, questionWord } from './completion/complete.ts';
import { nonEmpty } from './input/arguments.ts';
import { isAgreed } from './input/confirm.ts';
import type { Io } from './io.ts';
import { ExitCode, exitCodes, formatError } from './output/errors.ts';
import { allCommands, asTyped, examples, hintsAsTyped, withExamplesFor, withHelpCommand } from './output/help.ts';
import { jsonLine } from './output/text.ts';

const versionRequested = 'rankd.version';

/** Runs one command line. Resolves with the exit code; never rejects. */
export async function runCli(argv: string[], io: Io): Promise<number> {
  const program = createProgram(io, argv);
  const [first, ...line] = argv;
  if (first === questionWord) {
    await answerShell(program, line, io);
    return 0;
  }
  if (first === windowWord) return greetInWindow(io);
  if (argv.length === 0) {
    io.stdout(asTyped(firstHelp, program, io.typedAs));
    return 0;
  }
  try {
    await program.parseAsync(withHelpCommand(program, argv), { from: 'user' });
    return 0;
  } catch (cause) {
    if (cause instanceof ExitCode) return cause.code;
    // parsing may have failed before it reached --json
    const asJson = program.opts()['json'] === true || argv.includes('--json');
    if (cause instanceof CommanderError && cause.exitCode === 0) {
      if (cause.code === versionRequested) io.stdout(asJson ? jsonLine({ v: 1, version }) : `${version}\n`);
      return 0;
    }
    const error = asRankdError(inWords(cause));
    const isVerbose = program.opts()['verbose'] === true;
    io.stderr(hintsAsTyped(formatError(error, { asJson, isVerbose }), { program, io, isJson: asJson }));
    return exitCodes[error.code];
  }
}

/** `rankd.cmd` passes this argument if a double click started it in a new window. */
const windowWord = '__window';

async function greetInWindow(io: Io): Promise<number> {
  if (!io.isTerminal) return runCli([], io);
  const { env, cwd } = io;
  const [question, next] =
    locateConfig({ env, cwd }) === undefined
      ? ['rankd is not set up here yet. Set it up for your group now?', 'init']
      : ['Start rankd now, in this window?', 'serve'];
  const isWanted = await isAgreed({ io, ask: (text) => io.ask(text) }, question, { preset: true });
  return runCli(isWanted ? [next] : [], io);
}

const firstHelp = `rankd changes members' ranks in one Roblox group, for your games.

  rankd serve              run it; without a configuration, on a simulated group
  rankd init               set it up for your group
  rankd key create NAME    create a key for a game
  rankd rank set USER RANK change a member's rank
  rankd history list       who changed what
  rankd status             how the daemon is doing
  rankd doctor             find out what is wrong, and how to fix it

All commands: rankd --help
`;

/** In the order of `rankd --help`. */
const commands = [
  serveCommand,
  initCommand,
  gameCommands,
  scriptCommand,
  workspaceCommands,
  keyCommands,
  whitelistCommands,
  rankCommands,
  roleCommands,
  suspensionCommands,
  groupCommands,
  doctorCommand,
  historyCommands,
  auditCommands,
  webhookCommands,
  discordCommands,
  forgetCommand,
  configCommands,
  openapiCommand,
  dashboardCommand,
  reloadCommand,
  statusCommand,
  healthCommand,
  serviceCommands,
  backupCommand,
  restoreCommand,
  databaseCommands,
  storeCommands,
  completionCommand,
  manCommand,
  versionCommand,
];

export function createProgram(io: Io, line: readonly string[] = []): Command {
  const program = new Command('rankd');
  const { defaults } = io.system;
  program
    .description('Self-hosted rank service for one Roblox group: verifies game keys and changes ranks, safely.')
    .option('-V, --version', 'print the version')
    .on('option:version', () => {
      throw new CommanderError(0, versionRequested, version);
    })
    .helpOption('-h, --help', 'show help')
    .option('-c, --config <file>', `configuration file (default: ${defaults.config})`, nonEmpty)
    .option('--data-dir <dir>', `folder of the database (default: ${defaults.dataDir})`, nonEmpty)
    .option('--json', 'print one JSON document')
    .option('-q, --quiet', 'print results only')
    .option('-v, --verbose', 'print more, including the causes of errors')
    .option('-y, --yes', 'answer yes to every question')
    .addHelpText(
      'after',
      examples('rankd serve', 'rankd key create my-game', 'rankd whitelist add 920587237', 'rankd rank test 1001 20'),
    );
  const cli = new Cli(io, program, { line, run: runCli });
  program.hook('preAction', async (_, command) => {
    const usesDataDir = !withoutDataDir.test(pathOf(command));
    // init creates the file
    const needsFile = command.name() !== 'init' && (usesDataDir || cli.options.config !== undefined);
    if (needsFile) requireNamed(cli.configSources);
    await cli.chooseDataDir();
    if (usesDataDir) cli.enterDataDir();
  });
  program.hook('postAction', () => cli.sayStorageLocation());
  for (const add of commands) add(program, cli);
  for (const command of allCommands(program)) {
    command
      .exitOverride((end) => {
        throw end.exitCode === 0 ? end : usageError(end, command);
      })
      .showSuggestionAfterError(true)
      .configureHelp({ showGlobalOptions: true })
      .configureOutput({
        writeOut: (text) => io.stdout(asTyped(withExamplesFor(io.system, text), program, io.typedAs)),
        writeErr: () => undefined,
        getOutHelpWidth: () => 100,
      });
    if (command !== program) command.helpOption('-h, --help', 'show help');
  }
  return program;
}

/** Matches the commands that do not use the data directory, and those that open it themselves, such as `doctor`. */
const withoutDataDir =
  /^rankd (?:completion|config|doctor|game|key hash|man|openapi|script|service|store copy|version)(?: |$)/;

/** Returns a command's full name, e.g. `rankd key create`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

const severalUsers = (command: string) =>
  `several members: put one on each line of a file, then ${command} --file FILE`;
const addressInFile = (path: string) =>
  `the address is as sensitive as a password, so it is never an argument: put it into a file, then ${path} NAME --url-file FILE`;

const instead: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['promote', 'demote'].map((name) => [`rankd rank ${name}`, severalUsers(`rankd rank ${name}`)]),
  ),
  'rankd rank set': `put a role name with spaces in quotes; ${severalUsers('rankd rank set RANK')}`,
  ...Object.fromEntries(
    ['add', 'set'].map((name) => [`rankd webhook ${name}`, addressInFile(`rankd webhook ${name}`)]),
  ),
};

/** The error for an argument that has only one possible value, as in `dashboard logout`. */
const onlyOneCommand = "unknown command '$1'; the only command here is $2.";

function usageError({ code, message }: CommanderError, command: Command): RankdError {
  const path = pathOf(command);
  const help = `${path} --help`;
  if (code === 'commander.help') {
    const names = command.commands.map((one) => one.name()).join(', ');
    return new RankdError('usage', `\`${path}\` needs a command: ${names}.`, { hint: help });
  }
  const [, problem = '', guesses = ''] = /^(?:error: )?(.*?)(?:\n\(Did you mean (.*)\?\))?$/s.exec(message) ?? [];
  const plain = problem
    .replace(
      /^command-argument value '(.*)' is invalid for argument '(.*?)'\. Allowed choices are \2\./s,
      onlyOneCommand,
    )
    .replace(/^command-argument value '(.*)' is invalid for argument '(.*?)'\./s, "the $2 can't be '$1'.")
    .replace(/^option '(?:-\w, )?(--[\w-]+)[^']*' argument '(.*)' is invalid\./s, "`$1` can't be '$2'.")
    .replace(/^option '(?:-\w, )?(--[\w-]+)[^']*' argument missing/, '`$1` needs a value')
    .replace(/^required option '(?:-\w, )?(--[\w-]+)[^']*' not specified/, '`$1` is required');
  const what = plain.charAt(0).toUpperCase() + plain.slice(1).replace(/\.$/, '');
  const [, typed = ''] = /'(.*)'/s.exec(problem) ?? [];
  const isAddress = typed.includes('://') && path.startsWith('rankd webhook ');
  const isOtherForm = code === 'commander.excessArguments' || typed === '--url' || isAddress;
  const hint = isOtherForm ? instead[path] : undefined;
  if (hint !== undefined) return new RankdError('usage', `${what}.`, { hint });
  const meant = suggest(typed, guesses.match(/[\w-]+/g) ?? []); // commander also suggests less similar words
  const hasCommands = command.commands.some((one) => one.name() === meant && one.commands.length > 0);
  const nearestCommand = meant === undefined ? path : `${path} ${meant}`;
  return new RankdError('usage', `${what}.`, {
    hint: meant === undefined || hasCommands ? `${nearestCommand} --help` : nearestCommand,
  });
}
