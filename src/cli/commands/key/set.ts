import type { Command } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import { RankdError } from '../../../base/errors.ts';
import { keyDocument } from '../../../usecases/documents/key.ts';
import { setKeyRules } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { keyArgument } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';
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
  const key = await cli.withStore((ports) => setKeyRules(ports, { key: idOrName, rules, by: cli.by }));
  cli.print({ key: keyDocument(key, systemClock.now()) }, `Key "${key.name}": ${describeRules(key)}`);
}
