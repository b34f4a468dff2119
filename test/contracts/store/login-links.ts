import { describe, expect, test } from 'vitest';
import { makeLoginLink, takeLoginLink } from '../../../src/usecases/upkeep/login-links.ts';
import type { StoreCase } from './store-case.ts';

const minuteMs = 60_000;
const asked = { by: 'cli:ann@host', isViewOnly: true, lifeMs: 60 * minuteMs };

export function loginLinksContract(at: StoreCase): void {
  describe('login links', () => {
    test('work once, at any daemon on the store, within five minutes', async () => {
      const { secret, expiresAt } = await makeLoginLink(at, asked);
      expect(secret).toMatch(/^[\w-]{22}$/);
      expect(expiresAt).toBe(at.clock.now() + 5 * minuteMs);
      const other = { ...at, store: at.other };
      expect(await takeLoginLink(other, 'guessed')).toBeUndefined();
      const taken = await Promise.all([at, other, at].map((ports) => takeLoginLink(ports, secret)));
      expect(taken.filter((link) => link !== undefined)).toEqual([{ ...asked, by: 'web:ann@host' }]);

      const late = await makeLoginLink(at, asked);
      await at.clock.advance(5 * minuteMs);
      expect(await takeLoginLink(at, late.secret)).toBeUndefined();
    });

    test('number at most a hundred: a new one replaces the oldest', async () => {
      const secrets: string[] = [];
      for (let made = 0; made < 101; made++) {
        secrets.push((await makeLoginLink(at, asked)).secret);
        await at.clock.advance(1);
      }
      const [oldest = '', second = ''] = secrets;
      expect(await takeLoginLink(at, oldest)).toBeUndefined();
      expect(await takeLoginLink(at, second)).toBeDefined();
    });

    test('stop working once they are dropped', async () => {
      const { secret } = await makeLoginLink(at, asked);
      await at.other.dropLoginLinks();
      expect(await takeLoginLink(at, secret)).toBeUndefined();
    });
  });
}
