import { type Command, Option } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import { type Key, type Scope, scopes, usualScopes } from '../../../core/model.ts';
import { keyDocument } from '../../../usecases/documents/key.ts';
import { existingKey } from '../../../usecases/keys/existing-key.ts';
import { createKey, type KeyRequest } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { keyName, lifetime } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';
import { keepIn, outOption, printMinted } from './hand-out.ts';
import { addRuleOptions, type RuleOptions, rulesIn } from './rule-options.ts';

interface CreateOptions extends RuleOptions {
  test?: boolean;
  expires?: number;
  scope: Scope[];
  ifNotExists?: boolean;
  out?: string;
}

export function createCommand(key: Command, cli: Cli): void {
  const command = key
    .command('create')
    .description('make a key; its secret is shown only once')
    .argument('<name>', 'name of the key', keyName)
    .option('--test', 'a key that runs every check and changes nothing')
    .option('--expires <duration>', 'the key is not accepted after this time, e.g. 90d', lifetime)
    .addOption(new Option('--scope <scope...>', 'what the key may do').choices(scopes).default([...usualScopes]))
    .option('--if-not-exists', 'if a key of this name exists, leave it as it is and say how it differs')
    .option(...outOption);
  addRuleOptions(command)
    .addHelpText(
      'after',
      examples(
        'rankd key create my-game',
        'rankd key create quiz --max-rank 50 --expires 90d',
        'rankd key create tryouts --direction promote --self-rank deny --rate 60',
        'rankd key create trial --test --out trial.key',
        'rankd key create web-shop --any-place --direction promote --max-rank 20',
      ),
    )
    .action((name: string, options: CreateOptions) => create(cli, name, options));
}

async function create(
  cli: Cli,
  name: string,
  { test, expires, scope, ifNotExists, out, ...rules }: CreateOptions,
): Promise<void> {
  const named = await rulesIn(cli, rules);
  await cli.withWrites(async (ports, isSimulated) => {
    const request: KeyRequest = {
      name,
      mode: test ? 'test' : 'live',
      scopes: [...new Set(scope)],
      rules: named,
      ...(expires !== undefined && { expiresAt: ports.clock.now() + expires }),
    };
    const existing = ifNotExists ? await existingKey(ports, request) : undefined;
    if (existing !== undefined) return printExisting(cli, existing);
    const made = { ...request, ...((await isSimulated()) && { isSimulated: true }) };
    const minted = await createKey(ports, { ...made, by: cli.by }, keepIn(cli, out));
    await printMinted(cli, minted, out, { created: true });
    if (made.isSimulated)
      cli.say(
        `It is good for the simulated group only, which rankd works on here; for a real one: rankd key adopt ${name}`,
      );
    if (!named.isAnyPlace) cli.say(`try: rankd whitelist add PLACE --key ${name}`);
  });
}

function printExisting(cli: Cli, { key, differs }: { key: Key; differs: string[] }): void {
  cli.print({ created: false, key: keyDocument(key, systemClock.now()), differs }, key.id);
  cli.say(`Key "${key.name}" exists already; its secret can't be shown again.`);
  if (differs.length > 0) cli.say(`warning: it is not what is asked for: ${differs.join('; ')}`);
}
