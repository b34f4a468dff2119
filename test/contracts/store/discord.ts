import { describe, expect, test } from 'vitest';
import { actorOf, judgeLink, judgeUnlink, newDiscordPerson } from '../../../src/core/discord-person.ts';
import { judgeForgetting } from '../../../src/core/forgetting.ts';
import { verifyAudit } from '../../../src/usecases/history/verify-audit.ts';
import { newChange, operator, record } from './samples.ts';
import type { StoreCase } from './store-case.ts';

const ann = newDiscordPerson('1100000000000000007');
const bob = newDiscordPerson('1100000000000000008');
const cy = newDiscordPerson('1100000000000000009');

export function discordContract(at: StoreCase): void {
  const actor = () => ({ by: operator, at: at.clock.now() });
  const link = (person: typeof ann, userId: number) =>
    at.store.updateDiscordPerson(person.discordId, judgeLink(person, userId, actor()));
  const recordPerson = (person: typeof ann) =>
    at.store.updateDiscordPerson(person.discordId, (known = person) => ({ change: known, events: [] }));

  describe('people on Discord', () => {
    test('are linked to one user at a time, with the actor and the time, and retain their salt', async () => {
      await recordPerson(ann);
      expect(await at.other.findDiscordPerson(ann.discordId)).toStrictEqual(ann);
      await link(newDiscordPerson(ann.discordId), 1001);
      await link(newDiscordPerson(ann.discordId), 1002);
      const linked = { ...ann, userId: 1002, linkedBy: operator, linkedAt: at.clock.now() };
      expect(await at.other.findDiscordPerson(ann.discordId)).toStrictEqual(linked);
      await recordPerson(bob);
      expect(await at.other.listDiscordPeople()).toStrictEqual([linked, bob]);
      await at.store.updateDiscordPerson(ann.discordId, judgeUnlink(ann.discordId, actor()));
      expect(await at.other.findDiscordPerson(ann.discordId)).toStrictEqual(ann);
      const events = await at.other.listAudit({ limit: 10, oldestFirst: true });
      expect(events.map(({ action, subject, detail }) => [action, subject, detail])).toEqual([
        ['discord.link', actorOf(ann), { rankerId: 1001 }],
        ['discord.link', actorOf(ann), { rankerId: 1002 }],
        ['discord.unlink', actorOf(ann), { rankerId: 1002 }],
      ]);
    });

    test('have the newest Roblox name from the changes of their user, not their Discord name', async () => {
      for (const [person, userId] of [
        [ann, 1001],
        [bob, 1002],
        [cy, 1003],
      ] as const)
        await link(person, userId);
      const ended = { state: 'applied', finishedAt: at.clock.now(), rankeeId: 7, rankeeName: '' } as const;
      const changes = [
        { rankeeId: 1001, rankeeName: 'OldAnn' },
        { rankerId: 1001, rankerName: 'NewAnn' },
        { rankeeId: 1001, rankerId: 1001, rankerName: '' },
        { rankerId: 1001, rankerName: 'Annie', by: actorOf(ann) },
        { rankerId: 1002, rankerName: 'OldBob' },
        { rankeeId: 1002, rankeeName: 'NewBob', by: actorOf(ann) },
        { rankeeId: 1004, rankeeName: 'Unlinked' },
      ];
      for (const [index, change] of changes.entries())
        await record(at.store, newChange({ ...ended, id: `chg_${index}`, ...change }));
      expect(await at.other.linkedNames([1001, 1002, 1003, 1004])).toEqual(
        new Map([
          [1001, 'NewAnn'],
          [1002, 'NewBob'],
        ]),
      );
      expect(await at.other.linkedNames([1002])).toEqual(new Map([[1002, 'NewBob']]));
    });

    test('without a link cannot be unlinked, and nothing is written', async () => {
      await recordPerson(bob);
      for (const { discordId } of [ann, bob])
        await expect(at.store.updateDiscordPerson(discordId, judgeUnlink(discordId, actor()))).rejects.toMatchObject({
          code: 'not_found',
        });
      expect(await at.store.listDiscordPeople()).toStrictEqual([bob]);
      expect(await at.store.listAudit({ limit: 10 })).toEqual([]);
    });

    test('are forgotten with their linked user: id, link and Discord name disappear from the history and the audit', async () => {
      await link(ann, 1001);
      await link(bob, 1002);
      const ended = { state: 'applied', finishedAt: at.clock.now(), rankeeId: 7 } as const;
      const byAnn = { rankerId: 0, rankerName: 'Annie', by: actorOf(ann) }; // like a change made before she was linked
      await record(at.store, newChange({ ...ended, id: 'chg_ann', ...byAnn }));
      await record(at.store, newChange({ ...ended, id: 'chg_bob', rankerName: 'Bobby', by: actorOf(bob) }));
      const forgetting = { userId: 1001, pseudonym: -77 };
      const forgotten = await at.store.forgetPerson(forgetting, judgeForgetting(forgetting, actor()));
      expect(forgotten).toMatchObject({ changes: 1, events: 1 });
      expect(await at.other.listDiscordPeople()).toMatchObject([{ discordId: bob.discordId }]);
      expect(await at.other.findChange('chg_ann')).toMatchObject({ rankerId: 0, rankerName: '' });
      expect(await at.other.findChange('chg_bob')).toMatchObject({ rankerName: 'Bobby' });
      const remaining = JSON.stringify([
        await at.other.listChanges({ limit: 9 }),
        await at.other.listAudit({ limit: 9 }),
      ]);
      for (const trace of [ann.discordId, ann.salt, 'Annie', '1001']) expect(remaining).not.toContain(trace);
      expect((await verifyAudit({ store: at.other })).isIntact).toBe(true);
    });
  });
}
