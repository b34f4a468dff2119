import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/input/arguments.ts';
import { documentedLimits } from '../support/fake-open-cloud/budgets.ts';
import { type FakeOpenCloud, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { configFor } from './fake-config.ts';
import { listenOrExit } from './shell.ts';

interface Options {
  port: number;
  group: number;
  latency: number;
  lag: number;
  limit?: number;
  writeScope: boolean;
  publicRoles: boolean;
}

/**
 * `npm run fake-roblox`: a fake Open Cloud for manual tests. A line of JSON on standard input adds a fault for the next
 * requests, and `clear` removes all faults. Exits on SIGINT.
 */
const { port, group, latency, lag, limit, writeScope, publicRoles } = new Command('npm run fake-roblox --')
  .description('Simulates Open Cloud on this machine, for manual tests; ends on Ctrl-C.')
  .option(
    '--port <port>',
    'port of Open Cloud; the public role list, the user names and the place lists use the next three',
    wholeNumber(1, 65_532),
    7300,
  )
  .option('--group <id>', 'id of the group', wholeNumber(1, 2 ** 53 - 1), 700)
  .option('--latency <ms>', 'delay of every response', wholeNumber(0, 600_000), 50)
  .option('--lag <ms>', 'lag of reads of members', wholeNumber(0, 600_000), 0)
  .option(
    '--limit <n>',
    'calls per minute for each operation, instead of the documented limits',
    wholeNumber(1, 1_000_000),
  )
  .option('--no-write-scope', 'use a key without group:write, whose writes return 200 but have no effect')
  .option('--no-public-roles', 'the public role list does not respond')
  .parse()
  .opts<Options>();
const fake = await listenOrExit(
  startFakeOpenCloud({
    port,
    legacyPort: port + 1,
    usersPort: port + 2,
    developPort: port + 3,
    groupId: group,
    latencyMs: latency,
    lagMs: lag,
    limits: limit === undefined ? documentedLimits : evenLimits(limit),
  }),
);
fake.hasPublicRoles = publicRoles;
if (!writeScope) {
  fake.credential.scopes = [{ name: 'group', operations: ['read'], groupIds: ['*'] }];
  fake.acceptsWritesWithoutScope = true;
}
print(introduction(fake));
const reported = { requests: 0, violations: 0 };
const reportTimer = setInterval(report, 200);
const input = createInterface({ input: process.stdin }).on('line', runLine);
process.once('SIGINT', async () => {
  clearInterval(reportTimer);
  input.close();
  report();
  await fake.close();
});

function runLine(line: string): void {
  try {
    if (line.trim() === 'clear') fake.faults.clear();
    else fake.faults.add(JSON.parse(line));
  } catch {
    print('neither "clear" nor JSON, e.g. {"operation":"assign","kind":"status 503","when":"after","times":3}');
  }
}

function report(): void {
  const { entries } = fake.journal;
  for (const { operation, userId, roleId, applied } of entries.slice(reported.requests)) {
    const what = [operation, userId && `user ${userId}`, roleId && `role ${roleId}`, applied && 'carried out'];
    print(what.filter(Boolean).join(' · '));
  }
  const violations = fake.violations();
  for (const violation of violations.slice(reported.violations)) print(`VIOLATION: ${violation}`);
  reported.requests = entries.length;
  reported.violations = violations.length;
}

function introduction(world: FakeOpenCloud): string {
  const { baseUrl, legacyBaseUrl, usersBaseUrl, developBaseUrl, apiKey, groupId, group } = world;
  const roles = [...group.roles].sort((a, b) => a.rank - b.rank);
  const nameOf = (id: number) => group.role(id)?.name ?? String(id);
  const members = group.userIds.map((userId) => {
    const held = (group.held(userId) ?? []).map(nameOf).join(', ') || nameOf(group.base.id);
    return `  ${userId}  ${held}${userId === world.credential.userId ? ' (the key acts as this account)' : ''}`;
  });
  return `base_url         ${baseUrl}
legacy_base_url  ${legacyBaseUrl}
users_base_url   ${usersBaseUrl}
develop_base_url ${developBaseUrl}
API key          ${apiKey}
group            ${groupId}

roles
${roles.map(({ id, name, rank }) => `  ${String(rank).padStart(3)}  ${name}  (${id})`).join('\n')}
members
${members.join('\n')}

To run rankd on it, in an empty folder:
cat > rankd.yaml <<'END'
${configFor(world)}END
export RANKD_DATA_DIR=./data RANKD_PLATFORM_API_KEY=${apiKey}
alias rankd="node ${fileURLToPath(new URL('../../bin/rankd.js', import.meta.url))}"
rankd serve

In a second terminal in that folder, after the same export and alias:
rankd key create game --out game.key
rankd whitelist add 1 --key game
curl -sw '\\n' 'http://127.0.0.1:7265/v1/ranker?placeid=1' -H "Authorization: Bearer $(cat game.key)" -d '{"rankerName":"Ann","rankerId":0,"rankeeName":"Bob","rankeeId":1001,"newRankId":20}'

Faults: type e.g. {"operation":"assign","kind":"status 503","when":"after","times":3} or clear
`;
}

function evenLimits(limit: number) {
  return { group: limit, roles: limit, memberships: limit, assign: limit, unassign: limit };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
