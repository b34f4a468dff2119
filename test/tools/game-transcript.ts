import { forwardTo, type GamePlayer } from '../game/game.ts';
import { openSystem, type System, systems } from '../game/systems.ts';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';
import { pacedTime } from '../support/paced-clock.ts';

/**
 * `npm run game-transcript`: runs every command in every admin system, on real Luau, with the built daemon and a fake
 * Open Cloud, and prints a transcript. Some names are ambiguous: Annabel's begins with Ann's, and the display name of a
 * third player is the name of a different user.
 */
await using home = await openCloudHome();
const { group } = home.roblox;
group.roles.push(
  { id: 77_000_030, name: 'Sergeant Major', rank: 30 },
  { id: 77_000_040, name: '🔰 | Cadet', rank: 15 },
);
const created = await home.home.json<{ secret: string }>(
  ...['key', 'create', 'transcript', '--scope', 'rank', '--scope', 'verify', '--scope', 'suspend', '-y'],
);
await home.home.json('whitelist', 'add', '1', '--key', 'transcript');
const daemon = await home.startDaemon();
for (const [index, system] of systems.entries())
  await show(system, 30_001 + 10 * index, created.secret, home, daemon.url);
for (const violation of home.roblox.violations()) printStep('VIOLATION', violation);

async function show(
  system: System,
  first: number,
  secret: string,
  { roblox }: OpenCloudHome,
  url: string,
): Promise<void> {
  const { group, journal } = roblox;
  const [ann, annabel, shownAsOffline, offline] = [first, first + 1, first + 2, first + 3];
  for (const id of [ann, annabel, shownAsOffline, offline]) group.setMember(id, [sampleRoles.trainee]);
  const players: GamePlayer[] = [
    { id: ann, name: 'Ann', team: 'Red' },
    { id: annabel, name: 'Annabel', team: 'Red' },
    { id: shownAsOffline, name: 'xX_Sniper_Xx', displayName: 'Offline' },
    { id: sampleUsers.otherAdmin, name: 'Bob' },
  ];
  await using scene = await openSystem(system, {
    ...{ clock: pacedTime, players, users: { offline }, secrets: { rankd: secret } },
    config: { rankers: `{ ${sampleUsers.otherAdmin} }` },
    serve: async (request) => {
      const answer = await forwardTo(url)(request);
      const { pathname } = new URL(request.url);
      printStep('the game asks', `${request.method} ${pathname} ${request.body}`.trim());
      if ('status' in answer && request.method === 'POST')
        printStep('rankd answers', `${answer.status} ${answer.body}`);
      return answer;
    },
  });
  process.stdout.write(`\n${system.name}\n`);
  const lines = [
    ['promote', 'Ann passed the quiz'],
    ['promote', 'an'],
    ['promote', 'Offline'],
    ['promote', '@Offline'],
    ['promote', 'Nobody_Here'],
    ['promote', 'nonadmins'],
    ['setrank', 'Ann sergeant major well done'],
    ['setrank', 'annabel cadet'],
    ['setrank', 'Ann nosuchrole'],
    ['demote', 'Ann, Annabel late'],
    ['demote', 'Ann, Annabel late'],
    ['suspend', `${ann} 3d rude`],
    ['unsuspend', 'Ann'],
  ] as const;
  for (const [kind, rest] of lines) {
    const before = journal.entries.length;
    const typed = `${system.typed(kind)} ${rest}`;
    printStep('Bob types', typed);
    const shown = await scene.type('Bob', typed, 10);
    for (const { operation, userId, roleId, applied } of journal.entries.slice(before)) {
      if (applied) printStep('Roblox does', `${operation} ${group.role(roleId ?? 0)?.name} (user ${userId})`);
    }
    printStep('Bob is shown', shown ?? 'nothing');
  }
}

function printStep(who: string, what: string): void {
  process.stdout.write(`  ${who.padEnd(14)} ${what}\n`);
}
