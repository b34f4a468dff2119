import type { Argument, Command, Option } from 'commander';
import { rolesCalled } from '../../core/role-name.ts';
import type { KeptRole, StoreOperations } from '../../ports/index.ts';
import { systemNames } from '../game/models.ts';
import { optionsOf, walk } from './walk.ts';

type FindNames = StoreOperations['findNames'];

/** What may come next: words with their meaning, or the files that the shell finds. */
export type Answer = Candidate[] | 'file' | 'directory';

export interface Candidate {
  value: string;
  description: string;
}

/** The words that `current` can become, after the whole `words`. */
export async function complete(
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

/** The key that the line names: `--key game`, `--key=game`, or `--key = game` of a shell that splits there. */
function keyIn(words: readonly string[]): string | undefined {
  const [, , key] = /(^| )--key[= ]+(\S+)/.exec(words.join(' ')) ?? [];
  return key;
}

/** commander adds a `help` to every group; one at the root is enough. */
function visibleCommands(command: Command): Command[] {
  const commands = command.createHelp().visibleCommands(command);
  return command.parent === null ? commands : commands.filter((child) => child.name() !== 'help');
}

/** Candidates by the name between the brackets. Names that are not here, such as group ids or durations, are for the person to know. */
const kinds: Record<string, 'key' | 'place' | 'rank' | 'system' | 'user' | 'file' | 'directory'> = {
  key: 'key',
  place: 'place',
  rank: 'rank',
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
      // digits alone would be an id
      return users.map((name) => ({
        value: current[0] === '@' || /^\d+$/.test(name) ? `@${name}` : name,
        description: '',
      }));
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

/** `file` of the argument `<file>` and of `--config <file>`, `place` of `--place <id>`. */
function kindOf(target: Option | Argument): string {
  if (!('flags' in target)) return target.name();
  const placeholder = /[<[]([\w-]+)/.exec(target.flags)?.[1] ?? '';
  return placeholder === 'id' ? (target.long ?? '').replace(/^--/, '') : placeholder;
}

/** A role by a word that means it and that no shell takes apart: its name without spaces, or else its id. */
function roleCandidate(roles: KeptRole[], { id, name, rank }: KeptRole): Candidate {
  const word = name.trim().replaceAll(/\s+/g, '-');
  const isMeant = /^[\p{L}\p{N}_.][\p{L}\p{N}_.-]*$/u.test(word) && /\D/.test(word);
  const [meant, ...others] = isMeant ? rolesCalled(roles, word) : [];
  const isOne = meant?.id === id && others.length === 0;
  return { value: isOne ? word : String(id), description: `${name}, rank ${rank}` };
}

function toCandidate({ long, short, flags, description }: Option): Candidate {
  return { value: long ?? short ?? flags, description };
}

function matching(candidates: Candidate[], current: string): Candidate[] {
  return candidates.filter(({ value }) => value.startsWith(current));
}

/** Puts the prefix before each value: shells that keep `--key=x` as one word want it whole. */
function withPrefix(prefix: string, answer: Answer): Answer {
  if (typeof answer === 'string') return answer;
  return answer.map(({ value, description }) => ({ value: prefix + value, description }));
}
