import { describe, expect, test } from 'vitest';
import type { StoreCase } from './store-case.ts';

export function groupContract(at: StoreCase): void {
  describe('the base role of a group', () => {
    test('is kept for every handle, for each group its own, and the last word counts', async () => {
      expect(await at.store.findBaseRole('group 7')).toBeUndefined();
      await at.store.keepBaseRole('group 7', 71);
      await at.store.keepBaseRole('group 8', 2 ** 53 - 1);
      await at.other.keepBaseRole('group 7', 72);
      expect(await at.store.findBaseRole('group 7')).toBe(72);
      expect(await at.other.findBaseRole('group 8')).toBe(2 ** 53 - 1);
      expect(await at.other.findBaseRole('group 9')).toBeUndefined();
    });
  });

  test('the real group that is served is kept for every handle, with the file that named it, if one did', async () => {
    expect(await at.store.findServedGroup()).toBeUndefined();
    await at.store.keepServedGroup({ group: 'group 7', configFile: '/srv/rankd.yaml' });
    expect(await at.other.findServedGroup()).toEqual({ group: 'group 7', configFile: '/srv/rankd.yaml' });
    await at.other.keepServedGroup({ group: 'group 8' });
    expect(await at.store.findServedGroup()).toEqual({ group: 'group 8' });
  });
}
