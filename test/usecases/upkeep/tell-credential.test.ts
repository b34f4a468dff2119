import { expect, onTestFinished, test } from 'vitest';
import { RankdError } from '../../../src/base/errors.ts';
import type { Credential } from '../../../src/core/model.ts';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import type { DaemonContext } from '../../../src/usecases/daemon-context.ts';
import { CredentialTeller } from '../../../src/usecases/upkeep/tell-credential.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { tempDir } from '../../support/temp-dir.ts';

test('the audit says each turn of the credential once, over restarts of the daemon too', async () => {
  const clock = new ManualClock();
  const store = await openSqliteStore({ dataDir: tempDir(), clock });
  onTestFinished(() => store.close());
  let dead: RankdError | undefined;
  let latest: Credential | undefined;
  const app = { store, clock, deadCredential: () => dead, latestCredential: () => latest } as unknown as DaemonContext;
  const told = async () => (await store.listAudit({ limit: 9, oldestFirst: true })).map(({ action }) => action);
  let teller = new CredentialTeller();
  const look = async (isRestarted: boolean) => {
    if (isRestarted) teller = new CredentialTeller();
    for (let round = 0; round < 3; round += 1) await teller.tell(app);
  };
  await look(false);
  latest = { state: 'valid' };
  await look(false);
  expect(await told()).toEqual([]);
  dead = new RankdError('platform_credential', 'The key is disabled.');
  await look(false);
  await look(true);
  expect(await told()).toEqual(['credential.refuse']);
  dead = undefined;
  await look(true);
  latest = { state: 'valid', expiresAt: clock.now() + 86_400_000 };
  await look(false);
  await look(true);
  expect(await told()).toEqual(['credential.refuse', 'credential.accept', 'credential.expire_soon']);
});
