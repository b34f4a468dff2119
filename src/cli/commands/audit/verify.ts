import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { RankdError } from '../../../base/errors.ts';
import { counted } from '../../../base/text.ts';
import { verdictDocument } from '../../../usecases/documents/audit.ts';
import { type AuditVerdict, describeBreak, verifyAudit } from '../../../usecases/history/verify-audit.ts';
import type { Cli } from '../../cli.ts';
import { ExitCode } from '../../output/errors.ts';
import { examples } from '../../output/help.ts';
import { whileWorking } from '../../output/terminal.ts';

const help = `
Each event holds a SHA-256 over itself and the event before it. If an event was edited, removed, inserted or moved, the
command names its number and ends with 5.

The chain alone can't show everything: somebody who can write the database file can compute the whole chain again, or cut
off its newest events and the note of how many there were. Keep heads somewhere else: with the setting audit.head_file the
daemon and the commands add the hash of each event to a file, and \`--head-file FILE\` compares all of them. \`--head HASH\`
does the same with one that this command printed. What retention (audit.keep) has removed can't be compared any more.
`;

export function verifyCommand(audit: Command, cli: Cli): void {
  audit
    .command('verify')
    .description('find edits of the audit and gaps in it; ends with 5 if there is one')
    .option('--head <hash>', 'also check that this noted head hash is still in the chain', headHash)
    .option('--head-file <file>', 'also compare every head that was noted in this file (audit.head_file)')
    .addHelpText(
      'after',
      `${help}${examples('rankd audit verify', 'rankd audit verify --head 4f1c…', 'rankd audit verify --head-file audit.heads', 'rankd audit verify --json')}`,
    )
    .action((options: { head?: string; headFile?: string }) => verify(cli, options));
}

async function verify(cli: Cli, { head, headFile }: { head?: string; headFile?: string }): Promise<void> {
  const notedHeads = headFile === undefined ? undefined : await headsIn(resolve(cli.io.cwd, headFile)); // first: what is noted is in the chain already
  const questions = { hasRetention: () => hasRetention(cli), notedHead: head, notedHeads };
  const verified = () => cli.withStore((ports) => verifyAudit(ports, questions));
  const verdict = await whileWorking(cli.line, 'reading the audit', verified);
  cli.print(verdictDocument(verdict), describe(verdict));
  if (!verdict.isIntact) throw new ExitCode(5);
}

function describe(verdict: AuditVerdict): string {
  const { rows, anchor, head, breaks, breakCount, notedHead, notedHeads } = verdict;
  const isExplained = breaks.every(({ kind }) => kind !== 'unexplained');
  const untold = breakCount - breaks.length;
  return [
    breakCount === 0
      ? `ok: ${counted(rows, 'event')}, each as it was written and following the one before it`
      : `BROKEN in ${counted(breakCount, 'place')}`,
    ...breaks.map(describeBreak),
    ...(untold > 0 ? [`and ${untold} more`] : []),
    ...(anchor.id > 0 && isExplained ? [`events before #${anchor.id + 1} were removed by retention (audit.keep)`] : []),
    ...(notedHead === undefined ? [] : [describeNotedHead(verdict)]),
    ...(notedHeads === undefined ? [] : [describeNotedHeads(notedHeads)]),
    `head: ${head.hash} (event #${head.id})`,
  ].join('\n');
}

function describeNotedHead({ anchor, notedHead }: AuditVerdict): string {
  if (notedHead === 'found') return 'the noted head is in the chain: everything up to it is what it was then';
  if (notedHead === 'removed')
    return 'the noted head was removed since: what came before it can not be checked any more';
  const retention = anchor.id > 0 ? ', unless it was noted before the oldest event that retention left' : '';
  return `NOT FOUND: the noted head is not in the chain; it was written anew or cut off${retention}`;
}

function describeNotedHeads({ found, removed }: { found: number; removed: number }): string {
  const notChecked = removed === 0 ? '' : `; ${removed} removed since, not checked`;
  return `noted heads: ${found} in the chain${notChecked}`;
}

/** Whether retention may remove audit events, by the configuration of this command. */
export async function hasRetention(cli: Cli): Promise<boolean> {
  return (await cli.loadConfig()).config.retention.auditMs !== undefined;
}

async function headsIn(file: string): Promise<Map<number, Set<string>>> {
  const { readHeads } = await import('../../../usecases/history/audit-heads.ts');
  const heads = await readHeads(file).catch((cause) => {
    throw new RankdError('usage', `The noted heads in ${file} can't be read.`, {
      hint: 'name the file of audit.head_file, or a copy of it, that this user may read',
      cause,
    });
  });
  if (heads.size > 0) return heads;
  throw new RankdError('usage', `${file} holds no head of an audit.`, {
    hint: 'name the file of audit.head_file, or a copy of it: each line has a time, the number of an event and its hash',
  });
}

/** The hash as `audit verify` prints it. */
function headHash(text: string): string {
  if (/^[\da-f]{64}$/i.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('It must be the 64 hexadecimal digits that `rankd audit verify` prints.');
}
