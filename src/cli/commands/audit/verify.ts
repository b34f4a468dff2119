import { type Command, InvalidArgumentError } from 'commander';
import { counted } from '../../../base/text.ts';
import { verdictDocument } from '../../../usecases/documents/audit.ts';
import { type AuditVerdict, describeBreak, verifyAudit } from '../../../usecases/history/verify-audit.ts';
import type { Cli } from '../../cli.ts';
import { ExitCode } from '../../output/errors.ts';
import { examples } from '../../output/help.ts';
import { whileWorking } from '../../output/waiting.ts';

const help = `
Each event holds a SHA-256 over itself and the event before it. If an event was edited, removed, inserted or moved, the
command names its number and ends with 5.

The chain alone can't show everything: somebody who can write the database file can compute the whole chain again, or cut
off its newest events and the note of how many there were. Keep the head hash that this command prints somewhere else;
\`--head HASH\` then shows that everything up to it is unchanged. When retention (audit.keep) removes an event, its hash
goes too: note a newer head from time to time.
`;

export function verifyCommand(audit: Command, cli: Cli): void {
  audit
    .command('verify')
    .description('find every edit of the audit and every gap in it; ends with 5 if there is one')
    .option('--head <hash>', 'also check that this noted head hash is still in the chain', headHash)
    .addHelpText(
      'after',
      `${help}${examples('rankd audit verify', 'rankd audit verify --head 4f1c…', 'rankd audit verify --json')}`,
    )
    .action((options: { head?: string }) => verify(cli, options));
}

async function verify(cli: Cli, { head }: { head?: string }): Promise<void> {
  const verified = () => cli.withStore((ports) => verifyAudit(ports, { notedHead: head }));
  const verdict = await whileWorking(cli.line, 'reading the audit', verified);
  cli.print(verdictDocument(verdict), describe(verdict));
  if (!verdict.isIntact) throw new ExitCode(5);
}

function describe(verdict: AuditVerdict): string {
  const { rows, anchor, head, breaks, breakCount, hasNotedHead } = verdict;
  const untold = breakCount - breaks.length;
  return [
    breakCount === 0
      ? `ok: ${counted(rows, 'event')}, each as it was written and following the one before it`
      : `BROKEN in ${counted(breakCount, 'place')}`,
    ...breaks.map(describeBreak),
    ...(untold > 0 ? [`and ${untold} more`] : []),
    ...(anchor.id > 0 ? [`events before #${anchor.id + 1} were removed by retention (audit.keep)`] : []),
    ...(hasNotedHead === undefined ? [] : [describeNotedHead(verdict)]),
    `head: ${head.hash} (event #${head.id})`,
  ].join('\n');
}

function describeNotedHead({ anchor, hasNotedHead }: AuditVerdict): string {
  if (hasNotedHead) return 'the noted head is in the chain: everything up to it is what it was then';
  const retention = anchor.id > 0 ? ', unless it was noted before the oldest event that retention left' : '';
  return `NOT FOUND: the noted head is not in the chain; it was written anew or cut off${retention}`;
}

/** The hash as `audit verify` prints it. */
function headHash(text: string): string {
  if (/^[\da-f]{64}$/i.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('It must be the 64 hexadecimal digits that `rankd audit verify` prints.');
}
