import type { Command } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import { RankdError } from '../../../base/errors.ts';
import type { Key } from '../../../core/model.ts';
import { keyDocument, shownState } from '../../../usecases/documents/key.ts';
import { adoptKey, pauseKey, resumeKey, revokeKey, setKeyRules } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { keyArgument } from '../../input/arguments.ts';
import { confirm } from '../../input/confirm.ts';
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
  const rules = await rulesIn(cli, options);
  if (Object.keys(rules).length === 0) {
    throw new RankdError('usage', 'Say what to set.', { hint: 'rankd key set --help' });
  }
  const key = await cli.withStore((ports) => setKeyRules(ports, { key: idOrName, rules, by: cli.by }), {
    isWriting: true,
  });
  const own = describeRules(key);
  cli.print(
    { key: keyDocument(key, systemClock.now()) },
    `Key "${key.name}": ${own === '-' ? 'no rules of its own' : own}`,
  );
}

export function revokeCommand(key: Command, cli: Cli): void {
  key
    .command('revoke')
    .description('refuse the key from the next request on, for good')
    .argument(...keyArgument)
    .addHelpText('after', examples('rankd key revoke my-game', 'rankd key revoke my-game -y'))
    .action((idOrName: string) => revoke(cli, idOrName));
}

async function revoke(cli: Cli, idOrName: string): Promise<void> {
  const agreed = ({ name }: Key) => confirm(cli, `Revoke key "${name}" for good?`);
  const { key, wasRevoked } = await cli.withStore((ports) => revokeKey(ports, { key: idOrName, by: cli.by }, agreed), {
    isWriting: true,
  });
  const outcome = wasRevoked ? 'was revoked already' : 'is revoked';
  cli.print({ key: keyDocument(key, systemClock.now()) }, `Key "${key.name}" ${outcome}.`);
}

export function adoptCommand(key: Command, cli: Cli): void {
  key
    .command('adopt')
    .description('let a key that was made on the simulated group work on the real one too')
    .argument(...keyArgument)
    .addHelpText('after', examples('rankd key adopt my-game'))
    .action((idOrName: string) => adopt(cli, idOrName));
}

async function adopt(cli: Cli, idOrName: string): Promise<void> {
  const { key, wasSimulated } = await cli.withStore((ports) => adoptKey(ports, { key: idOrName, by: cli.by }), {
    isWriting: true,
  });
  const outcome = wasSimulated ? 'is good for the real group too' : 'was not made on the simulated group';
  cli.print({ key: keyDocument(key, systemClock.now()) }, `Key "${key.name}" ${outcome}.`);
}

export function pauseCommand(key: Command, cli: Cli): void {
  key
    .command('pause')
    .description('let the key change no rank from the next request on, until you resume it')
    .argument(...keyArgument)
    .addHelpText('after', examples('rankd key pause my-game'))
    .action((idOrName: string) => pause(cli, idOrName));
}

async function pause(cli: Cli, idOrName: string): Promise<void> {
  const { key, wasPaused } = await cli.withStore((ports) => pauseKey(ports, { key: idOrName, by: cli.by }), {
    isWriting: true,
  });
  const outcome = wasPaused ? 'was paused already' : 'is paused';
  cli.print({ key: keyDocument(key, systemClock.now()) }, `Key "${key.name}" ${outcome}.`);
  cli.say(`Its games can change no rank until you run: rankd key resume ${key.name}`);
}

export function resumeCommand(key: Command, cli: Cli): void {
  key
    .command('resume')
    .description('let a paused key change ranks again, whether you or the circuit breaker paused it')
    .argument(...keyArgument)
    .addHelpText('after', examples('rankd history list --key my-game', 'rankd key resume my-game'))
    .action((idOrName: string) => resume(cli, idOrName));
}

async function resume(cli: Cli, idOrName: string): Promise<void> {
  const { key, wasPaused } = await cli.withStore((ports) => resumeKey(ports, { key: idOrName, by: cli.by }), {
    isWriting: true,
  });
  const now = systemClock.now();
  const outcome = wasPaused ? `is ${shownState(key, now)} again` : 'was not paused';
  cli.print({ key: keyDocument(key, now) }, `Key "${key.name}" ${outcome}.`);
}
