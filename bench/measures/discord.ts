import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { discordSection, interactionOf, signed } from '../../test/support/discord-interactions.ts';
import { openRankd } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { program, startServer } from '../processes.ts';
import { spreadOf } from '../rounds.ts';
import { configFor } from './ranker.ts';

/** Longer than the bench runs, so the platform never responds. */
const hangingMs = 2 ** 31 - 1;
/** The numbers of people who run a command at the same moment. */
const crowds = [30, 200];
const withinMs = 100;
/** The pause after a round, in which acknowledged commands finish all work that does not need Roblox. */
const pauseMs = 500;
const uncounted = 3;

/** Measures how soon rankd acknowledges commands that Discord posts at the same moment, while Roblox hangs. */
export async function discord({ rounds }: { rounds: number }): Promise<Finding[]> {
  await using platform = await startServer([program('platform.ts'), String(hangingMs)], { core: 'load' });
  await using targets = await startServer([program('webhook-targets.ts')], { core: 'load' });
  await using rankd = await openRankd(configFor(platform) + discordSection(targets.url));
  await rankd.home.json('key', 'create', 'hr', '--for-discord');
  await using daemon = await rankd.start({ RANKD_PLATFORM_API_KEY: 'bench' });
  const findings: Finding[] = [];
  for (const crowd of crowds) {
    const measured: number[][] = [];
    for (let round = 0; round < uncounted + rounds; round += 1) {
      measured.push(await acknowledgements(`${daemon.url}/discord/interactions`, crowd));
      await sleep(pauseMs);
    }
    const counted = measured.slice(uncounted);
    const common = { what: `${crowd} commands from Discord at once, while Roblox hangs`, unit: 'ms' } as const;
    const at = (share: number) =>
      spreadOf(counted.map((all) => all[Math.floor((all.length - 1) * share)] ?? Number.NaN));
    findings.push(
      { ...common, against: '', figure: 'acknowledged after, p50', ...at(0.5) },
      { ...common, against: '', figure: 'acknowledged after, p99', ...at(0.99) },
      {
        ...common,
        against: `${withinMs} ms`,
        figure: 'the last acknowledged after',
        goal: { atMost: withinMs },
        ...at(1),
      },
    );
  }
  return findings;
}

let person = 4_400_000_000_000_000_000n;

/** Returns the acknowledgement times in ascending order. Throws if a command is not acknowledged. */
async function acknowledgements(url: string, crowd: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true });
  const commands = Array.from({ length: crowd }, () => {
    person += 1n; // a new person for each command, because rankd limits each person's rate
    const command = { name: 'promote', options: { user: String(person % 1_000_000n) }, userId: String(person) };
    const body = JSON.stringify(interactionOf(command));
    return { body, headers: signed(body) };
  });
  const times = await Promise.all(
    commands.map(async ({ body, headers }) => {
      const startedAt = performance.now();
      const sent = request(url, { method: 'POST', headers, agent }).end(body);
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      const ms = performance.now() - startedAt;
      const answer = (await json(response)) as { type?: number };
      if (answer.type !== 5) throw new Error(`a command was not acknowledged: ${JSON.stringify(answer)}`);
      return ms;
    }),
  );
  agent.destroy();
  return times.toSorted((a, b) => a - b);
}
