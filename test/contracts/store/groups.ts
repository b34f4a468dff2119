import { describe, expect, test } from 'vitest';
import { RankdError } from '../../../src/base/errors.ts';
import { configurationFits } from '../../../src/core/events.ts';
import type { RoleMeaning } from '../../../src/core/role-settings.ts';
import type { StoreCase } from './store-case.ts';

export function groupContract(at: StoreCase): void {
  describe('the base role of a group', () => {
    test('is stored for every handle, separately for each group, and the latest value applies', async () => {
      expect(await at.store.findBaseRole('group 7')).toBeUndefined();
      await at.store.storeBaseRole('group 7', 71);
      await at.store.storeBaseRole('group 8', 2 ** 53 - 1);
      await at.other.storeBaseRole('group 7', 72);
      expect(await at.store.findBaseRole('group 7')).toBe(72);
      expect(await at.other.findBaseRole('group 8')).toBe(2 ** 53 - 1);
      expect(await at.other.findBaseRole('group 9')).toBeUndefined();
    });
  });

  test('the served real group is stored for every handle, with the file that named it, if any', async () => {
    expect(await at.store.findServedGroup()).toBeUndefined();
    await at.store.storeServedGroup({ group: 'group 7', configFile: '/srv/rankd.yaml' });
    expect(await at.other.findServedGroup()).toEqual({ group: 'group 7', configFile: '/srv/rankd.yaml' });
    await at.other.storeServedGroup({ group: 'group 8' });
    expect(await at.store.findServedGroup()).toEqual({ group: 'group 8' });
  });

  test('the meanings of settings are stored for every handle and group, as judged, in one transaction with their events', async () => {
    const locked = { setting: 'policy.locked_roles', entry: '🦊 "x"', alarm: null };
    const stored: RoleMeaning = { ...locked, roles: [{ id: 2 ** 53 - 1, name: "O'Neil", rank: 254 }] };
    const drifted: RoleMeaning = { ...locked, entry: '120', roles: [], alarm: 'gone' };
    const event = configurationFits(drifted, { by: 'daemon', at: 1 });
    expect(await at.store.findMeanings('group 7')).toEqual([]);
    const written = await at.store.updateMeanings('group 7', () => ({ change: [stored, drifted], events: [event] }));
    expect(written).toEqual([stored, drifted]);
    expect(await at.other.findMeanings('group 7')).toEqual(expect.arrayContaining([stored, drifted]));
    expect(await at.other.findMeanings('group 8')).toEqual([]);
    expect(await at.other.listAudit({ action: 'configuration', limit: 9 })).toMatchObject([
      { subject: locked.setting },
    ]);
    const refusal = new RankdError('conflict', 'No.');
    await expect(at.other.updateMeanings('group 7', () => ({ refusal }))).rejects.toBe(refusal);
    await at.other.updateMeanings('group 7', (now) => ({
      change: now.filter((one) => one.alarm !== null),
      events: [],
    }));
    expect(await at.store.findMeanings('group 7')).toEqual([drifted]);
  });
}
