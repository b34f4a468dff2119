import type http from 'node:http';
import { expect, test } from 'vitest';
import { rankBody } from '../support/answers.ts';
import { onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';
import { startPost } from '../support/send.ts';

const { trainee: bob } = sampleUsers;

test(
  'a caller that disconnects does not stop its change, whether running or waiting',
  onOpenCloud(
    async ({ app, fake, url, secret }) => {
      fake.latencyMs = 100;
      const callers: http.ClientRequest[] = [];
      for (const newRankId of [20, 50]) {
        const caller = startPost(`${url}/v1/ranker?placeid=1`, secret);
        caller.end(JSON.stringify(rankBody({ rankeeId: bob, newRankId })));
        callers.push(caller);
        await expect.poll(() => app.requests.count, { interval: 1 }).toBe(callers.length);
      }
      await expect.poll(() => fake.journal.writes(bob), { interval: 1 }).toHaveLength(1);
      for (const caller of callers) caller.destroy();

      await expect.poll(() => fake.group.held(bob)).toEqual([sampleRoles.captain]);
      await expect
        .poll(() => app.store.listChanges({ limit: 9 }))
        .toMatchObject([
          { state: 'applied', newRankId: 50 },
          { state: 'applied', newRankId: 20 },
        ]);
    },
    { deadlineMs: 20_000 },
  ),
);
