import { Argument, type Command, Option } from 'commander';
import type { Cli } from './cli.ts';
import { examples } from './output/help.ts';

type AddCommand = (parent: Command, cli: Cli) => void;

declare const valueType: unique symbol;
type Typed<Target, Value> = Target & { readonly [valueType]: Value };
type Options = Readonly<Record<string, Typed<Option | Option[], unknown>>>;
type Arguments = ReadonlyArray<Typed<Argument, unknown>>;

/** The values of the options, keyed by name. Options whose value can be `undefined` become optional fields. */
export type ValuesOf<Given extends Options> = {
  [Name in keyof Given as undefined extends Given[Name][typeof valueType]
    ? never
    : Name]: Given[Name][typeof valueType];
} & {
  [Name in keyof Given as undefined extends Given[Name][typeof valueType] ? Name : never]?: Exclude<
    Given[Name][typeof valueType],
    undefined
  >;
};
type ValuesIn<Given extends Arguments> = { [Index in keyof Given]: Given[Index][typeof valueType] };

interface CommandSpec<Args extends Arguments, Opts extends Options> {
  name: string;
  about: string;
  /** Overrides the usage line that commander derives from the arguments. */
  usage?: string;
  args?: Args;
  /** Keyed by the name of the value in `run`: `dryRun` for `--dry-run`. */
  options?: Opts;
  help?: string;
  examples: string[];
  run(cli: Cli, ...given: [...ValuesIn<Args>, ValuesOf<Opts>]): unknown;
}

export function command<const Args extends Arguments = [], Opts extends Options = Record<never, never>>(
  spec: CommandSpec<Args, Opts>,
): AddCommand {
  const { name, about, usage, args = [], help = '', run } = spec;
  const options = Object.entries<Option | Option[]>(spec.options ?? {});
  return (parent, cli) => {
    const made = parent.command(name).description(about);
    if (usage !== undefined) made.usage(usage);
    for (const argument of args) made.addArgument(argument);
    for (const [key, target] of options) {
      for (const one of [target].flat()) {
        if (one.attributeName() !== key) throw new Error(`${one.flags} of ${name} is named ${key}`);
        made.addOption(one);
      }
    }
    made.addHelpText('after', help + examples(...spec.examples));
    made.action(async (...given: unknown[]) => {
      const values: Record<string, unknown> = { ...made.opts() };
      for (const [key, target] of options) if (isFlag(target)) values[key] ??= false;
      await run(cli, ...([...given.slice(0, -2), values] as unknown as [...ValuesIn<Args>, ValuesOf<Opts>]));
    });
  };
}

function isFlag(target: Option | Option[]): boolean {
  return !Array.isArray(target) && !target.required && !target.optional;
}

export function commandGroup(spec: {
  name: string;
  about: string;
  examples: string[];
  commands: AddCommand[];
}): AddCommand {
  return (parent, cli) => {
    const made = parent.command(spec.name).description(spec.about);
    made.addHelpText('after', examples(...spec.examples));
    for (const add of spec.commands) add(made, cli);
  };
}

/**
 * Defines an option with a value, such as `--limit <n>`. If `parse` rejects the value, the usage error names the
 * option.
 */
export function option(flags: string, about: string): Typed<Option, string | undefined>;
export function option<Value>(
  flags: string,
  about: string,
  parse: (text: string) => Value,
): Typed<Option, Value | undefined>;
export function option<Value>(
  flags: string,
  about: string,
  parse: (text: string) => Value,
  preset: Value,
): Typed<Option, Value>;
export function option(flags: string, about: string, parse?: (text: string) => unknown, preset?: unknown): Option {
  const made = new Option(flags, about).default(preset);
  return parse === undefined ? made : made.argParser(parse);
}

export function neededOption<Value>(
  flags: string,
  about: string,
  parse: (text: string) => Value,
): Typed<Option, Value> {
  return new Option(flags, about).argParser(parse).makeOptionMandatory() as Typed<Option, Value>;
}

/**
 * Defines an option without a value, which is false unless it is given. A negated option such as `--no-check` is true
 * unless it is given.
 */
export function flag(flags: string, about: string): Typed<Option, boolean> {
  return new Option(flags, about) as Typed<Option, boolean>;
}

/** Defines a pair of options such as `--system` and `--no-system`. The value is undefined if neither is given. */
export function optionPair(
  [yes, aboutYes]: [flags: string, about: string],
  [no, aboutNo]: [flags: string, about: string],
): Typed<Option[], boolean | undefined> {
  return [new Option(yes, aboutYes), new Option(no, aboutNo)] as unknown as Typed<Option[], boolean | undefined>;
}

export function choice<const Word extends string>(
  flags: string,
  about: string,
  words: readonly Word[],
): Typed<Option, Word | undefined> {
  return new Option(flags, about).choices(words) as Typed<Option, Word | undefined>;
}

export function choices<Word extends string, Preset extends Word[] | undefined = undefined>(
  flags: string,
  about: string,
  words: readonly Word[],
  preset?: Preset,
): Typed<Option, Word[] | Preset> {
  return new Option(flags, about).choices(words).default(preset) as Typed<Option, Word[] | Preset>;
}

type ValueOfArgument<Name extends string, Value> = Name extends `${string}...${string}`
  ? Value[]
  : Name extends `[${string}`
    ? Value | undefined
    : Value;

/** Defines an argument. `name` is `<user>`, `[user]` if it is optional, or `[user...]` for any number. */
export function argument<Name extends string>(
  name: Name,
  about: string,
): Typed<Argument, ValueOfArgument<Name, string>>;
export function argument<Name extends string, Value>(
  name: Name,
  about: string,
  parse: (text: string) => Value,
): Typed<Argument, ValueOfArgument<Name, Value>>;
export function argument(name: string, about: string, parse?: (text: string) => unknown): Argument {
  const made = new Argument(name, about);
  if (parse === undefined) return made;
  if (made.variadic) return made.argParser((text, earlier: unknown[] = []) => [...earlier, parse(text)]);
  return made.argParser((text) => parse(text));
}

export function oneOf<Name extends string, const Word extends string>(
  name: Name,
  about: string,
  words: readonly Word[],
): Typed<Argument, ValueOfArgument<Name, Word>> {
  return new Argument(name, about).choices(words) as Typed<Argument, ValueOfArgument<Name, Word>>;
}
