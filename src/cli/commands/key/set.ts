import type { Command } from 'commander';
import { RankdError } from '../../../base/errors.ts';
import { requireKey, setKeyRules } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { examples } from '../../output/help.ts';
import { keyArgument } from './key-argument.ts';
import { keyDocument } from './key-document.ts';
import { addRuleOptions, describeRules, type RuleOptions, rulesIn } from './rule-options.ts';

export function setCommand(key: Command, cli: Cli): void {
  const command = key
    .command('set')
    .description('change what a key may do; its secret stays as it is')
    .argument(...keyArgument);
  addRuleOptions(command)
    .addHelpText(
      'after',
      examples('rankd key set my-game --max-rank 50 --direction promote', 'rankd key set my-game --max-rank none'),
    )
    .action((idOrName: string, options: RuleOptions) => set(cli, idOrName, options));
}

async function set(cli: Cli, idOrName: string, options: RuleOptions): Promise<void> {
  const rules = rulesIn(options);
  if (Object.keys(rules).length === 0) {
    throw new RankdError('usage', 'Say what to set.', { hint: 'rankd key set --help' });
  }
  await cli.withStore(async (store) => {
    const key = await requireKey(store, idOrName);
    const changed = await setKeyRules(store, { key, rules }, cli.by);
    cli.print({ key: keyDocument(changed) }, `Key "${changed.name}": ${describeRules(changed)}`);
  });
}
