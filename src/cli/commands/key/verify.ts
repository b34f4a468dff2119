import { Argument, type Command } from 'commander';
import { systemClock } from '../../../clock.ts';
import { accessChecks, wrongMode } from '../../../core/access.ts';
import { hashKey, keyMode } from '../../../core/api-key.ts';
import { asPlaceId } from '../../arguments.ts';
import type { Cli } from '../../cli.ts';
import { ExitCode } from '../../exit-code.ts';
import { examples } from '../../help.ts';
import { keyDocument } from './key-document.ts';

export function verifyCommand(key: Command, cli: Cli): void {
  key
    .command('verify')
    .description('tell whether a key read from standard input is accepted')
    .addArgument(
      new Argument('<->', 'a dash: the key comes from standard input, so that no history keeps it').choices(['-']),
    )
    .option('--place <id>', 'also check the whitelist for this place', asPlaceId)
    .addHelpText(
      'after',
      examples('rankd key verify - < my-game.key', 'rankd key verify - --place 920587237 < my-game.key'),
    )
    .action((_dash: string, options: { place?: number }) => verify(cli, options));
}

async function verify(cli: Cli, { place }: { place?: number }): Promise<void> {
  const secret = (await cli.io.readStdin()).trim();
  await cli.withStore(async (store) => {
    const presented = keyMode(secret) && store.findPresented({ hash: hashKey(secret), placeId: place ?? 0 });
    const question = { now: systemClock.now(), placeId: place ?? 0 };
    const refusals = presented
      ? [
          ...(presented.key.mode === keyMode(secret) ? [] : [wrongMode(presented.key)]),
          ...accessChecks
            .filter(({ name }) => name !== 'scope' && (name !== 'whitelist' || place !== undefined))
            .flatMap((check) => check.refusal(presented, { ...question, scope: 'rank' }) ?? []),
        ]
      : [];
    const reason = presented
      ? refusals.map(({ code, internal, message }) => (code === 'invalid_key' ? internal : message))[0]
      : keyMode(secret)
        ? 'no such key'
        : 'not an API key, or mistyped';
    const document = {
      accepted: reason === undefined,
      reason: reason ?? null,
      key: presented ? keyDocument(presented.key) : null,
    };
    cli.print(document, reason === undefined ? `yes: key "${presented?.key.name}"` : `no: ${reason}`);
    if (reason !== undefined) throw new ExitCode(5);
  });
}
