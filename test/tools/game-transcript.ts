import { forwardTo, type GamePlayer } from '../game/game.ts';
import { openSystem, type System, systems } from '../game/systems.ts';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';
import { pacedTime } from '../support/paced-clock.ts';

/**
 * `npm run game-transcript`: types a promotion in each admin system as an admin, on real Luau, with the built daemon,
 * on a fake Open Cloud.
 */
await using home = await openCloudHome();
const daemon = await home.startDaemon();
for (const [index, system] of systems.entries()) await show(system, 30_001 + 2 * index, home, daemon.url);
for (const violation of home.roblox.violations()) say('VIOLATION', violation);

async function show(system: System, ann: number, { roblox, secret }: OpenCloudHome, url: string): Promise<void> {
  const { group, journal } = roblox;
  const offline = ann + 1;
  group.setMember(ann, [sampleRoles.trainee]);
  group.setMember(offline, [sampleRoles.officer]);
  const players: GamePlayer[] = [
    { id: ann, name: 'Ann' },
    { id: sampleUsers.otherAdmin, name: 'Bob' },
  ];
  await using scene = await openSystem(system, {
    ...{ clock: pacedTime, players, users: { patrol_pat: offline }, secrets: { rankd: secret } },
    config: { rankers: `{ ${sampleUsers.otherAdmin} }` },
    serve: async (request) => {
      const answer = await forwardTo(url)(request);
      const { pathname, search } = new URL(request.url);
      say('the game asks', `${request.method} ${pathname}${search} ${request.body}`);
      if ('status' in answer) say('rankd answers', `${answer.status} ${answer.body}`);
      return answer;
    },
  });
  process.stdout.write(`\n${system.name}\n`);
  for (const who of ['Ann passed the quiz', 'Patrol_Pat', 'Nobody_At_All']) {
    const before = journal.entries.length;
    const typed = `${system.typed('promote')} ${who}`;
    say('Bob types', typed);
    const shown = await scene.type('Bob', typed, 10);
    for (const { operation, userId, roleId, applied } of journal.entries.slice(before)) {
      if (applied) say('Roblox does', `${operation} ${group.role(roleId ?? 0)?.name} (user ${userId})`);
    }
    say('Bob is shown', shown ?? 'nothing');
    await scene.run('task.wait(2) return true');
  }
}

function say(who: string, what: string): void {
  process.stdout.write(`  ${who.padEnd(14)} ${what}\n`);
}
