import type { Argument, Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { dataDirectory } from '../../config/data-dir.ts';
import { storeFinder } from '../../config/find-store.ts';
import { rolesCalled } from '../../core/role-scheme.ts';
import type { StoredRole, StoreOperations } from '../../ports/index.ts';
import { engineOf } from '../../stores/engine.ts';
import { systemNames } from '../game-models.ts';
import type { Io } from '../io.ts';
import { refuseRoot } from '../refuse-root.ts';

export const questionWord = '__complete';

const giveUpAfterMs = 300;

/**
 * Runs `__complete WORD… :CURRENT`; the colon preserves an empty word. Prints one line per candidate, with a tab before
 * its description, or only `:file` or `:directory`. Ignores errors, because no user would see them.
 */
export async function answerShell(program: Command, line: readonly string[], io: Io): Promise<void> {
  const words = line.slice(0, -1);
  const current = (line.at(-1) ?? ':').slice(1);
  try {
    const answer = await complete(program, { words, current }, async (query) => {
      const { env, cwd, user } = io;
      const dataDir = dataDirectory(optionIn('--data-dir', words), io);
      refuseRoot(dataDir, io, words);
      const configFile = optionIn('--config', words) ?? optionIn('-c', words);
      const server = await storeFinder({ configFile, env, cwd, user })?.();
      const found = engineOf({ dataDir, clock: systemClock, server }).operations.findNames(query);
      if (server === undefined) return found;
      return Promise.race([found, systemClock.sleep(giveUpAfterMs).then(() => Promise.reject(new Error('too late')))]);
    });
    if (typeof answer === 'string') io.stdout(`:${answer}\n`);
    else io.stdout(answer.map(({ value, description }) => `${value}\t${description}\n`).join(''));
  } catch {
    // no candidates
  }
}

/** Finds an option's value on an incomplete line, which commander can't parse. */
function optionIn(option: string, words: readonly string[]): string | undefined {
  const after = words.slice(words.indexOf(option) + 1).filter((word) => word !== '=');
  if (words.includes(option)) return after[0];
  return words.find((word) => word.startsWith(`${option}=`))?.slice(option.length + 1);
}

type FindNames = StoreOperations['findNames'];

/** With `file` or `directory`, the shell completes the names itself. */
type Answer = Candidate[] | 'file' | 'directory';

interface Candidate {
  value: string;
  description: string;
}

async function complete(
  program: Command,
  { words, current }: { words: readonly string[]; current: string },
  findNames: StoreOperations['findNames'],
): Promise<Answer> {
  const places: FindNames = (query) => findNames({ ...query, placesOf: keyIn(words) });
  const { command, pending, argument, takesCommand, onlyArguments } = walk(program, words);
  const isNextOption = pending?.variadic && current.startsWith('-');
  if (pending !== undefined && !isNextOption) return valuesOf(pending, current === '=' ? '' : current, places);
  if (current.startsWith('-') && !onlyArguments) {
    const [flag = '', value] = current.split(/=(.*)/s, 2);
    const option = optionsOf(command).find(({ long }) => long === flag);
    if (value === undefined || option === undefined) return matching(optionsOf(command).map(toCandidate), current);
    return withPrefix(`${flag}=`, await valuesOf(option, value, places));
  }
  if (takesCommand) {
    const commands = visibleCommands(command);
    return matching(
      commands.map((child) => ({ value: child.name(), description: child.description() })),
      current,
    );
  }
  return argument === undefined ? [] : valuesOf(argument, current, places);
}

/** Finds the value of `--key game`, `--key=game`, or `--key = game`, as some shells split it. */
function keyIn(words: readonly string[]): string | undefined {
  const [, , key] = /(^| )--key[= ]+(\S+)/.exec(words.join(' ')) ?? [];
  return key;
}

/** Leaves out the `help` that commander adds to every group, except at the root. */
function visibleCommands(command: Command): Command[] {
  const commands = command.createHelp().visibleCommands(command);
  return command.parent === null ? commands : commands.filter((child) => child.name() !== 'help');
}

/** Keyed by the name that `kindOf` returns. Other values, such as durations, have no candidates. */
const kinds: Record<string, 'key' | 'place' | 'rank' | 'setting' | 'system' | 'user' | 'file' | 'directory'> = {
  key: 'key',
  place: 'place',
  rank: 'rank',
  setting: 'setting',
  model: 'system',
  system: 'system',
  user: 'user',
  file: 'file',
  dir: 'directory',
  where: 'file',
};

async function valuesOf(
  target: Option | Argument,
  current: string,
  findNames: StoreOperations['findNames'],
): Promise<Answer> {
  const { argChoices } = target;
  if (argChoices !== undefined)
    return matching(
      argChoices.map((value) => ({ value, description: '' })),
      current,
    );
  const kind = kinds[kindOf(target)];
  switch (kind) {
    case 'file':
    case 'directory':
      return kind;
    case 'key': {
      const { keys } = await findNames({ placesLike: '' });
      return matching(
        keys.map(({ name, mode }) => ({ value: name, description: `${mode} key` })),
        current,
      );
    }
    case 'place': {
      const { places } = await findNames({ placesLike: current });
      return places.map((place) => ({ value: String(place), description: '' }));
    }
    case 'rank': {
      const { roles } = await findNames({ placesLike: '' });
      const candidates = roles.filter(({ rank }) => rank > 0 && rank < 255).map((role) => roleCandidate(roles, role));
      return candidates.filter(({ value }) => value.toLowerCase().startsWith(current.toLowerCase()));
    }
    case 'user': {
      const { users } = await findNames({ placesLike: '', usersLike: current.replace('@', '') });
      // digits alone would mean an id
      return users.map((name) => ({
        value: current[0] === '@' || /^\d+$/.test(name) ? `@${name}` : name,
        description: '',
      }));
    }
    case 'setting': {
      const { settings } = await import('../../config/settings.ts');
      return matching(
        settings.map(({ path, description }) => ({ value: path, description })),
        current,
      );
    }
    case 'system':
      return matching(
        systemNames.map((value) => ({ value, description: '' })),
        current,
      );
    default:
      return [];
  }
}

/** Returns the name of a value's kind, e.g. `file` for `--config <file>`, or `place` for `--place <id>`. */
function kindOf(target: Option | Argument): string {
  if (!('flags' in target)) return target.name();
  const placeholder = /[<[]([\w-]+)/.exec(target.flags)?.[1] ?? '';
  return placeholder === 'id' ? (target.long ?? '').replace(/^--/, '') : placeholder;
}

/** Returns the role as a single word, which no shell splits: its name with dashes, or else its id. */
function roleCandidate(roles: StoredRole[], { id, name, rank }: StoredRole): Candidate {
  const word = name.trim().replaceAll(/\s+/g, '-');
  const isNameLike = /^[\p{L}\p{N}_.][\p{L}\p{N}_.-]*$/u.test(word) && /\D/.test(word);
  const [meant, ...others] = isNameLike ? rolesCalled(roles, word) : [];
  const isOne = meant?.id === id && others.length === 0;
  return { value: isOne ? word : String(id), description: `${name}, rank ${rank}` };
}

function toCandidate({ long, short, flags, description }: Option): Candidate {
  return { value: long ?? short ?? flags, description };
}

function matching(candidates: Candidate[], current: string): Candidate[] {
  return candidates.filter(({ value }) => value.startsWith(current));
}

/** Shells that treat `--key=x` as one word replace all of it, so every candidate needs the prefix. */
function withPrefix(prefix: string, answer: Answer): Answer {
  if (typeof answer === 'string') return answer;
  return answer.map(({ value, description }) => ({ value: prefix + value, description }));
}

interface Position {
  command: Command;
  /** The option whose value is expected next. */
  pending: Option | undefined;
  argument: Argument | undefined;
  takesCommand: boolean;
  /** True after `--`. */
  onlyArguments: boolean;
  /** Words that match no command, option or argument. */
  unknown: string[];
}

/**
 * Parses the complete words, starting at the root command. Treats a separate `=` as part of the option before it,
 * because some shells split `--key=x`.
 */
export function walk(program: Command, words: readonly string[]): Position {
  let command = program;
  let pending: Option | undefined;
  let taken = 0;
  let onlyArguments = false;
  const unknown: string[] = [];
  for (const word of words) {
    const child = taken === 0 && !onlyArguments ? childOf(command, word) : undefined;
    if (pending !== undefined && !(pending.variadic && word.startsWith('-'))) {
      if (word !== '=' && !pending.variadic) pending = undefined;
    } else if (word === '--') {
      pending = undefined;
      onlyArguments = true;
    } else if (word.startsWith('-') && word !== '-' && !onlyArguments) {
      const [flag = ''] = word.split('=', 1);
      const option = optionsOf(command).find(({ long, short }) => flag === long || flag === short);
      pending = undefined;
      if (option === undefined) unknown.push(word);
      else if ((option.required || option.optional) && !word.includes('=')) pending = option;
    } else if (child !== undefined) {
      command = child;
    } else if (!(word === 'help' && command === program && taken === 0)) {
      if (argumentAt(command, taken) === undefined) unknown.push(word);
      taken += 1;
    }
  }
  const argument = argumentAt(command, taken);
  const takesCommand = taken === 0 && !onlyArguments && command.commands.length > 0;
  return { command, pending, argument, takesCommand, onlyArguments, unknown };
}

function optionsOf(command: Command): Option[] {
  const help = command.createHelp();
  return [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)];
}

function childOf(command: Command, word: string): Command | undefined {
  return command.commands.find((child) => child.name() === word || child.aliases().includes(word));
}

function argumentAt({ registeredArguments }: Command, index: number): Argument | undefined {
  const last = registeredArguments.at(-1);
  return registeredArguments[index] ?? (last?.variadic ? last : undefined);
}
