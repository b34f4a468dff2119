import { discordPath } from '../../test/support/fake-discord.ts';
import { openRankd, type Rankd } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { type LoadReport, openLoad } from '../load.ts';
import { program, type ServerProcess, startServer } from '../processes.ts';
import { interleaved, overStarts, ratio } from '../rounds.ts';
import { configFor, manyCallers, promotion } from './ranker.ts';

/** `POST /v1/ranker` of a daemon that tells two programs and a channel in Discord of each change, against one that tells nobody. */
export async function webhooks({ rounds }: { rounds: number }): Promise<Finding[]> {
  const measured = await overStarts(rounds, measureOnce);
  const throughput = ({ requestsPerSecond }: LoadReport) => requestsPerSecond;
  return [
    {
      what: 'POST /v1/ranker with three webhooks',
      against: 'the same with none',
      figure: 'req/s',
      unit: '×',
      goal: { atLeast: 0.97 },
      ...ratio(measured.flat(), throughput),
    },
  ];
}

async function measureOnce(rounds: number) {
  await using load = openLoad();
  await using platform = await startServer([program('platform.ts'), '0'], { core: 'load' });
  await using targets = await startServer([program('webhook-targets.ts')], { core: 'load' });
  await using telling = await openRankd(`${configFor(platform)}webhooks:\n  allow_private: [127.0.0.1]\n`);
  await addWebhooks(telling, targets);
  await using silent = await openRankd(configFor(platform));
  const env = { RANKD_PLATFORM_API_KEY: 'bench' };
  await using ours = await telling.start(env);
  await using baseline = await silent.start(env);
  let firstMember = 1_000;
  const run = async ({ url }: ServerProcess, { secret }: Rankd) => {
    const options = { url, ...manyCallers, requests: [promotion(secret)], firstMember };
    const report = await load.send(options, { status: 200 });
    firstMember = report.lastMember;
    return report;
  };
  return await interleaved({ ours: () => run(ours, telling), baseline: () => run(baseline, silent) }, rounds);
}

async function addWebhooks({ home }: Rankd, { url }: ServerProcess): Promise<void> {
  const targets = { bot: `${url}/bot`, other: `${url}/other`, log: `${url}${discordPath}` };
  for (const [name, address] of Object.entries(targets)) {
    const kind = name === 'log' ? 'discord' : 'standard';
    const line = ['webhook', 'add', name, '--kind', kind, '--events', 'all', '--no-test'];
    const env = { RANKD_PLATFORM_API_KEY: 'bench' };
    const { code, stderr } = await home.run(line, { input: address, env });
    if (code !== 0) throw new Error(stderr);
  }
}
