import type { ErrorCode } from '../../base/errors.ts';
import { roleTitle } from '../../core/describe.ts';
import type { ApprovedChange } from '../../usecases/change/plan-change.ts';
import { type CheckResult, type DryRun, notReached } from '../../usecases/change/test-rank.ts';
import { dryRunDocument } from '../../usecases/history/change-document.ts';
import type { Cli } from '../cli.ts';
import { ExitCode, exitCodes, formatError } from '../output/errors.ts';
import { table } from '../output/table.ts';

/**
 * Prints a dry run's checks, and the writes that the change would make. Throws `ExitCode` unless the change is
 * allowed.
 */
export function printDryRun(cli: Cli, dryRun: DryRun): void {
  const { checks, approved } = dryRun;
  const reached = cli.options.verbose ? checks : checks.filter(isReached);
  const shown = (name: string) => (name === 'platform' ? 'Roblox' : name);
  const lines = reached.map((result) => [result.state, shown(result.name), detailOf(result)]);
  const fixes = checks.flatMap((result) =>
    result.state === 'FAIL' ? [formatError(result.error, { asJson: false })] : [],
  );
  const steps = approved === undefined ? [] : describeSteps(approved);
  const outcome =
    approved === undefined ? 'refused' : steps.length === 0 ? 'nothing to change' : `would ${steps.join(', then ')}`;
  cli.print(
    dryRunDocument(dryRun),
    table(['', 'check', ''], lines, { wrapsLast: true }),
    ...fixes.map((fix) => cli.asTyped(fix.trimEnd())),
    outcome,
  );
  if (approved === undefined) throw new ExitCode(exitCodeOf(checks));
}

function describeSteps({ plan, scheme }: ApprovedChange): string[] {
  return plan.steps.map(({ kind, roleId }) => {
    const role = scheme.roles.find(({ id }) => id === roleId);
    return `${kind === 'assign' ? 'give' : 'take'} ${role === undefined ? roleId : roleTitle(role)}`;
  });
}

/** Errors that prevent the check itself, so rankd can't determine whether the change is allowed. */
const obstacles: ErrorCode[] = [
  'platform_unavailable',
  'platform_busy',
  'platform_credential',
  'store_unavailable',
  'config_invalid',
  'configuration_misfit',
];

function exitCodeOf(checks: CheckResult[]): number {
  const codes = checks.flatMap((result) => (result.state === 'FAIL' ? [result.error.code] : []));
  const obstacle = codes.find((code) => obstacles.includes(code));
  return obstacle === undefined ? 5 : exitCodes[obstacle];
}

function isReached(result: CheckResult): boolean {
  return result.state !== 'skip' || result.detail !== notReached;
}

function detailOf(result: CheckResult): string {
  return result.state === 'FAIL' ? result.error.message : result.detail;
}
