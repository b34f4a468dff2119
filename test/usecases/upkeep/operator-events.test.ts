import { expect, onTestFinished, test } from 'vitest';
import { RankdError } from '../../../src/base/errors.ts';
import type { Credential } from '../../../src/core/model.ts';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import type { DaemonContext } from '../../../src/usecases/daemon-context.ts';
import { CredentialEvents } from '../../../src/usecases/upkeep/operator-events.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { tempDir } from '../../support/temp-dir.ts';

test('the audit records each change in the state of the credential once, even across restarts of the daemon', async () => {
  const clock = new ManualClock();
  const store = await openSqliteStore({ dataDir: tempDir(), clock });
  onTestFinished(() => store.close());
  let dead: RankdError | undefined;
  let latest: Credential | undefined;
  const app = { store, clock, deadCredential: () => dead, latestCredential: () => latest } as unknown as DaemonContext;
  const recorded = async () => (await store.listAudit({ limit: 9, oldestFirst: true })).map(({ action }) => action);
  let credential = new CredentialEvents();
  const recordRounds = async (isRestarted: boolean) => {
    if (isRestarted) credential = new CredentialEvents();
    for (let round = 0; round < 3; round += 1) await credential.record(app);
  };
  await recordRounds(false);
  latest = { state: 'valid' };
  await recordRounds(false);
  expect(await recorded()).toEqual([]);
  dead = new RankdError('platform_credential', 'The key is disabled.');
  await recordRounds(false);
  await recordRounds(true);
  expect(await recorded()).toEqual(['credential.refuse']);
  dead = undefined;
  await recordRounds(true);
  latest = { state: 'valid', expiresAt: clock.now() + 86_400_000 };
  await recordRounds(false);
  await recordRounds(true);
  expect(await recorded()).toEqual(['credential.refuse', 'credential.accept', 'credential.expire_soon']);
});
