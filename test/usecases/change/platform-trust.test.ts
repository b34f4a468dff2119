import { expect, test } from 'vitest';
import { Surprises } from '../../../src/base/surprises.ts';
import { PlatformTrust } from '../../../src/usecases/change/platform-trust.ts';
import { newChange } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';

test('repeated refusals cannot fill the list of late reads, which reserves room for applied changes', () => {
  const trust = new PlatformTrust(new Surprises(new ManualClock()), () => undefined);
  for (let count = 0; count < 2_000; count += 1) trust.addRead(newChange(), 0);
  expect(trust.reads).toHaveLength(100);
  for (let count = 0; count < 2_000; count += 1) trust.noteApplied(newChange({ state: 'applied', demotion: true }), 0);
  expect(trust.reads).toHaveLength(1_100);
});
