import { callWithin } from '../../ports/platform.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { examined, type Finding, findingsDocument } from '../doctor/finding.ts';
import { credentialFindings, groupFindings, trustFindings } from '../doctor/platform.ts';
import {
  daemonFindings,
  keyFindings,
  suspensionFindings,
  webhookFindings,
  workspaceFindings,
} from '../doctor/store.ts';
import { stuckHolds } from '../holds/open-hold.ts';
import { inspectKeys } from '../keys/inspect-keys.ts';
import type { DaemonStatus } from '../upkeep/status-document.ts';
import { viewWebhooks } from '../webhooks/view-webhooks.ts';
import { showWorkspace } from '../workspace/workspace.ts';

/** Progress in setting up the real group, as far as rankd can check it. */
interface SetupFacts {
  isReal: boolean;
  isCredentialAccepted: boolean;
  hasAddress: boolean;
  hasKey: boolean;
  hasPlace: boolean;
  /** True if any of the keys has been used. */
  isUsed: boolean;
}

/**
 * Returns the progress in setting up the real group, and the findings of those `rankd doctor` checks that the daemon
 * can run.
 */
export async function viewSetup(app: DaemonContext, daemon: DaemonStatus) {
  using call = callWithin(app.clock, app.deadlineMs, 'operator');
  const isReal = !daemon.simulated;
  const keys = await inspectKeys(app);
  // Keys that were created for a simulated group do not work with a real one.
  const working = keys.filter(({ key }) => !isReal || !key.isSimulated);
  const checks: Array<[string, () => Finding[] | Promise<Finding[]>]> = [
    ['daemon', () => daemonFindings(daemon)],
    ['workspace', async () => workspaceFindings(await showWorkspace(app))],
    ['credential', () => (isReal ? credentialFindings(app, call) : [])],
    ['group', () => groupFindings(app, call)],
    ['behavior', () => trustFindings(daemon)],
    ['suspension', async () => suspensionFindings(await stuckHolds(app))],
    ['keys', () => keyFindings(keys, { kind: daemon.platform })],
    ['webhooks', async () => webhookFindings(await viewWebhooks(app))],
  ];
  const findings: Finding[] = [];
  for (const [name, check] of checks) findings.push(...(await examined(name, check)));
  const facts: SetupFacts = {
    isReal,
    isCredentialAccepted: isReal && daemon.credential.isAccepted,
    hasAddress: daemon.publicUrl !== null,
    hasKey: working.length > 0,
    hasPlace: working.some(({ hasPlace }) => hasPlace),
    isUsed: working.some(({ key }) => key.secrets.some(({ lastUsedAt }) => lastUsedAt !== undefined)),
  };
  return { ...facts, ...findingsDocument(findings) };
}
