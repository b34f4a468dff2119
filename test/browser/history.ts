import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DaemonProcess } from '../support/daemon-process.ts';
import type { CliHome } from '../support/run-cli.ts';
import { SteppedClock } from '../support/stepped-clock.ts';
import { SeededRandom } from '../tools/random.ts';

/** The beginning of the group file for the pictures. The group is fictional; `writeGroup` appends more members. */
const group = `name: Harbour Watch
id: 5551234
roles:
  - { name: Visitor, rank: 1, base: true }
  - { name: Cadet, rank: 10 }
  - { name: Regatta Crew, rank: 15 }
  - { name: Lookout, rank: 20 }
  - { name: Boatswain, rank: 40 }
  - { name: Harbour Master, rank: 100 }
  - { name: Admiralty, rank: 200 }
owner: 900
acting_account: 901
members:
  - { id: 901, name: RankKeeper, roles: [200] }
  - { id: 910, name: tidewatcher, roles: [100] }
  - { id: 911, name: Anselm_K, roles: [100] }
`;

const members = [
  ...['quietfox_92', 'BlazeRunner', 'Mirabelle', 'tof_u', 'OakAndIron', 'zephyrette', 'Kassiopeia7', 'Hallgrim'],
  ...['pixelbaker', 'NorthSeaNed', 'lumen_x', 'Paperboat', 'Ottoline', 'rustybuoy', 'fjordling', 'SaltAndPeter'],
].map((name, index) => ({ id: 1_001 + index, name, rank: [10, 10, 20, 20, 40][index % 5] ?? 10 }));

const ladder = [10, 20, 40];
const rankers = [
  { rankerId: 910, rankerName: 'tidewatcher' },
  { rankerId: 911, rankerName: 'Anselm_K' },
];
interface Asked {
  id: number;
  name: string;
  rank: number;
  rankerId?: number;
  rankerName?: string;
}

const dayMs = 24 * 3_600_000;
const places = { 'main-game': 920_587_237, 'training-hub': 920_588_001 };

/** The Node.js option that makes rankd record every command as typed by ann@pc. */
export const asAnn = `--import ${new URL('../tools/pictured-user.ts', import.meta.url)}`;

export function writeGroup(home: CliHome): void {
  const held = members.map(({ id, name, rank }) => `  - { id: ${id}, name: ${name}, roles: [${rank}] }\n`).join('');
  writeFileSync(home.path('group.yaml'), group + held);
  writeFileSync(
    home.path('rankd.yaml'),
    JSON.stringify({
      platform: { kind: 'simulated', group_file: './group.yaml' },
      group: { ladder: [10, 20, 40, 100] },
      discord: {
        ...{ application: '1100000000000000001', public_key: 'ab'.repeat(32), server: '2200000000000000002' },
        ...{ commands: [{ role: '3300000000000000003', key: 'trainers' }], api_base_url: 'http://127.0.0.1:9' },
      },
      ...{ webhooks: { allow_private: ['127.0.0.1'] }, limits: { rank: 100_000 } },
    }),
  );
}

/** Generates thirty days of history by moving rankd's clock forward. Resolves with the key of `main-game`. */
export async function live30Days(home: CliHome, hooks: { good: string; bad: string }): Promise<string> {
  const clock = new SteppedClock(join(home.folder, 'clock'), { offsetMs: -30 * dayMs });
  const env = { ...clock.env, NODE_OPTIONS: `${clock.env['NODE_OPTIONS']} ${asAnn}` };
  const at = async (...line: string[]) => {
    const { code, stderr } = await home.run(line, { env });
    if (code !== 0) throw new Error(`${line.join(' ')}: ${stderr}`);
  };
  const secrets = new Map<string, string>();
  await using daemon = await DaemonProcess.start(home, { env });
  const make = async (name: string, ...options: string[]) => {
    const { stdout } = await home.run(['key', 'create', name, ...options, '--json'], { env });
    secrets.set(name, (JSON.parse(stdout) as { secret: string }).secret);
  };
  await make('main-game', '--max-rank', '40');
  await make('training-hub', '--max-rank', '20', '--direction', 'promote');
  await make('event-bot', '--any-place', '--system', '--rate', '30');
  await at('key', 'create', 'trainers', '--for-discord', '--direction', 'promote', '--max-rank', '20');
  await at('discord', 'link', '4400000000000000005', '1003');
  await at('discord', 'link', '4400000000000000006', '1010');
  await at('whitelist', 'add', `${places['main-game']}`, '--key', 'main-game', '--note', 'Harbour');
  await at('whitelist', 'add', `${places['training-hub']}`, '--key', 'training-hub', '--note', 'Academy');
  writeFileSync(home.path('good.url'), hooks.good);
  writeFileSync(home.path('bad.url'), hooks.bad);
  await at('webhook', 'add', 'staff-log', '--url-file', 'good.url', '--out', 'good.secret');
  // No program listens at this address, so the command warns, but it still adds the webhook.
  await home.run(['webhook', 'add', 'stats-site', '--url-file', 'bad.url', '--out', 'bad.secret'], { env });

  const random = new SeededRandom(7);
  const ranks = new Map(members.map(({ id, rank }) => [id, rank]));
  /** Usually a promotion, sometimes a demotion, and rarely a rank above the key's limit. */
  const nextRank = (id: number): number => {
    if (random.between(0, 14) === 0) return 100;
    const step = ladder.indexOf(ranks.get(id) ?? 10);
    const way = step === 0 || (step < ladder.length - 1 && random.between(0, 3) > 0) ? 1 : -1;
    return ladder[step + way] ?? 10;
  };
  const ask = async (key: keyof typeof places, { rank, id, name, ...ranker }: Asked) => {
    const { status } = await daemon.post(`/v1/ranker?placeid=${places[key]}`, {
      key: secrets.get(key),
      body: { ...ranker, rankeeName: name, rankeeId: id, newRankId: rank, command: ':rank' },
    });
    if (status === 200) ranks.set(id, rank);
  };
  for (let day = 29; day >= 0; day--) {
    const count = 3 + random.between(0, 10 - 1) + ([0, 6].includes((30 - day) % 7) ? 8 : 0);
    const moments = Array.from({ length: count }, () =>
      day === 0 ? random.between(3_600, 9 * 3_600) : random.between(0, 17 * 3_600 - 1) + 7 * 3_600,
    ).sort((a, b) => b - a);
    for (const seconds of moments) {
      clock.step(-(day * dayMs + seconds * 1_000));
      const member = random.pick(members);
      const rank = nextRank(member.id);
      const isTraining = rank === 20 && ranks.get(member.id) === 10;
      await ask(isTraining ? 'training-hub' : 'main-game', { ...random.pick(rankers), ...member, rank });
    }
    if (day === 2)
      await at('rank', 'suspend', '@rustybuoy', '--for', '7d', '--reason', 'harassed visitors at the pier');
  }
  clock.step(-40 * 60_000);
  await at('rank', 'suspend', '@SaltAndPeter', '--for', '3d', '--reason', 'spammed the fog horn');
  await at('rank', 'set', '@Hallgrim', '40', '--for', '14d', '--reason', 'stands in for the summer');
  await at('role', 'add', '@quietfox_92', 'Regatta Crew', '--reason', 'won the spring regatta');
  for (const minutes of [26, 17, 9, 4]) {
    clock.step(-minutes * 60_000);
    const member = random.pick(members);
    await ask('main-game', { ...rankers[0], ...member, rank: nextRank(member.id) });
  }
  clock.step(0);
  await at('key', 'create', 'trial', '--test', '--expires', '30d');
  await daemon.stop();
  return secrets.get('main-game') ?? '';
}

/** Ranks the member 20 and then 40, so that the newest change is a promotion, whatever the member's rank was. */
export async function promoteNow(daemon: DaemonProcess, key: string): Promise<void> {
  for (const newRankId of [20, 40])
    await daemon.post(`/v1/ranker?placeid=${places['main-game']}`, {
      key,
      body: { ...rankers[1], rankeeName: 'Ottoline', rankeeId: 1_013, newRankId, command: ':rank' },
    });
}
