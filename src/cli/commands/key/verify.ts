import type { Command } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import { describeRefusal } from '../../../base/refusal-details.ts';
import { accessChecks, wrongMode } from '../../../core/access.ts';
import { hashKey, keyMode } from '../../../core/api-key.ts';
import type { KeyMode } from '../../../core/model.ts';
import type { KeyRecord } from '../../../ports/index.ts';
import type { Cli } from '../../cli.ts';
import { ExitCode } from '../../exit-code.ts';
import { asPlaceId } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';
import { keyDocument } from './key-document.ts';
import { dashArgument, readKey, readsInput } from './secret-input.ts';

export function verifyCommand(key: Command, cli: Cli): void {
  key
    .command('verify')
    .description('tell whether a key read from standard input is accepted')
    .addArgument(dashArgument('verify'))
    .option('--place <id>', 'also check the whitelist for this place', asPlaceId)
    .addHelpText(
      'after',
      examples('rankd key verify - < my-game.key', 'rankd key verify - --place 920587237 < my-game.key'),
    )
    .action((dash: '-' | undefined, options: { place?: number }) =>
      dash === undefined ? readsInput('verify') : verify(cli, options),
    );
}

async function verify(cli: Cli, { place }: { place?: number }): Promise<void> {
  const secret = await readKey(cli);
  const mode = keyMode(secret);
  await cli.withStore(async (store) => {
    const presented = mode && store.lookUpKey({ hash: hashKey(secret), placeId: place ?? 0 });
    const unknown = describeRefusal({ reason: mode === undefined ? 'malformed' : 'unknown' });
    const reason = presented ? whyRefused(presented, { mode, place }) : unknown;
    const document = {
      accepted: reason === undefined,
      reason: reason ?? null,
      key: presented ? keyDocument(presented.key) : null,
    };
    cli.print(document, reason === undefined ? `yes: key "${presented?.key.name}"` : `no: ${reason}`);
    if (reason !== undefined) throw new ExitCode(5);
  });
}

/** What is wrong with a key first, in the operator's words; `undefined` where nothing is. */
function whyRefused(
  presented: KeyRecord,
  { mode, place }: { mode: KeyMode | undefined; place: number | undefined },
): string | undefined {
  const question = { scope: 'rank', placeId: place ?? 0, now: systemClock.now() } as const;
  const checks = accessChecks
    .filter(({ name }) => name !== 'scope' && (name !== 'whitelist' || place !== undefined))
    .map((check) => check.refusal(presented, question));
  const refusals = [presented.key.mode === mode ? undefined : wrongMode(presented.key), ...checks];
  const refusal = refusals.find((found) => found !== undefined);
  return refusal?.code === 'invalid_key' && refusal.details ? describeRefusal(refusal.details) : refusal?.message;
}
