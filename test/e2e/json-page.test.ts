import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { wrapped } from '../support/command-reference.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { everyCommand } from '../support/every-command.ts';
import { CliHome } from '../support/run-cli.ts';
import { startWebhookSink } from '../support/webhook-sink.ts';

/** Commands that print one JSON document with or without --json. */
const fixedFormat = ['openapi', 'config schema'];

const notRunHere: Record<string, string> = {
  serve: 'prints its log',
  'discord setup': 'needs a server on Discord',
  'store accept': 'needs PostgreSQL',
};

/** Lines that run next to a daemon. Lines that create data precede the lines that need it. */
const lines = [
  ...['webhook add bot --no-test --out bot.secret', 'key create shop', 'key list', 'key show game'],
  ...['key set shop --max-rank 20', 'key rotate shop', 'key pause shop', 'key resume shop', 'key adopt shop'],
  ...['key verify -', 'key hash -', 'key revoke shop -y', 'whitelist add 2 --key game', 'whitelist list'],
  ...['whitelist disable 2 --key game', 'whitelist enable 2 --key game', 'whitelist check 2 --key game'],
  ...['whitelist remove 2 --key game', 'rank set 1001 10', 'rank promote 1001', 'rank demote 1001'],
  ...['rank set 20 --file users.txt -y', 'rank show 1001', 'rank test 1001 10', 'rank suspend 1002 --for 1h'],
  ...['suspension list', 'suspension show 1002', 'suspension extend 1002 --for 1h', 'rank unsuspend 1002'],
  ...['role add 1001 Captain', 'role remove 1001 Captain', 'group show', 'group roles', 'group members 20'],
  ...['history list', 'history show CHANGE', 'history undo CHANGE --dry-run', 'audit list', 'audit verify'],
  ...['webhook list', 'webhook show bot', 'webhook test bot', 'webhook set bot --events all', 'webhook rotate bot'],
  ...['webhook deliveries bot', 'webhook redeliver bot 1', 'webhook disable bot', 'webhook enable bot'],
  ...['webhook remove bot -y', 'discord link 4400000000000000005 1003', 'discord links'],
  ...['discord unlink 4400000000000000005', 'forget 1002 -y', 'forget --requested', 'workspace show'],
  ...['workspace suspend -y', 'workspace resume', 'workspace plan top', 'config check --offline', 'config show'],
  ...['config get server.port', 'config path', 'game list', 'game write --url https://rankd.example.com'],
  ...['doctor --offline', 'status', 'health', 'reload', 'dashboard', 'dashboard logout', 'backup copy.db', 'db check'],
  ...['db migrate', 'history export', 'script --url https://rankd.example.com', 'service print', 'completion bash'],
  ...['man', 'version'],
];

const withoutDaemon = [
  'restore copy.db -y',
  'store copy --from copy.db --to copied',
  'service install --dir .',
  'service remove --dir .',
  'init --group 4199740 --credential-file roblox.key --no-check --force',
];

type Document = Record<string, unknown>;

test('docs/json.md has the fields of each document that --json prints (update it with -u)', async () => {
  const documents = await printed();
  const named = documents.map(([line]) => /^[a-z]+(?: [a-z]+)?/.exec(line)?.[0] ?? line);
  const missing = everyCommand.filter((name) => !named.some((one) => one === name || one.startsWith(`${name} `)));
  expect(missing.toSorted()).toEqual([...fixedFormat, ...Object.keys(notRunHere)].toSorted());
  await expect(pageOf(documents)).toMatchFileSnapshot('../../docs/json.md');
});

async function printed(): Promise<Array<[line: string, document: Document]>> {
  using home = new CliHome();
  await using sink = await startWebhookSink();
  writeFileSync(
    home.path('rankd.yaml'),
    'group: { ladder: [Trainee, Officer] }\nwebhooks: { allow_private: [127.0.0.1/32] }\n',
  );
  writeFileSync(home.path('users.txt'), '1001\n');
  const secret = await home.createKey();
  writeFileSync(home.path('roblox.key'), 'a-key-of-open-cloud', { mode: 0o600 });
  const daemon = await DaemonHere.start(home);
  const documents: Array<[string, Document]> = [];
  let change = '';
  for (const line of [...lines, ...withoutDaemon]) {
    if (line === withoutDaemon[0]) await daemon[Symbol.asyncDispose]();
    const input = line.startsWith('webhook') ? sink.url : secret;
    const run = () => home.here([...line.replace('CHANGE', change).split(' '), '--json'], { input });
    if (line.startsWith('webhook deliveries')) await expect.poll(async () => (await run()).stdout).toContain('"id"');
    const { stdout, stderr } = await run();
    expect(stdout, `${line}: ${stderr}`).not.toBe('');
    const document = JSON.parse(stdout) as Document;
    change = (document['change'] as { id?: string } | undefined)?.id ?? change;
    documents.push([line.replace('CHANGE', 'chg_…'), document]);
  }
  return documents;
}

const common = ['key', 'entry', 'change', 'suspension', 'webhook', 'workspace', 'setting'];

function pageOf(documents: Array<[string, Document]>): string {
  const objects = common.map((name) => {
    const found = documents.find(([, document]) => isObject(document[name]));
    return { name, fields: found?.[1][name] as Document };
  });
  const byFields = Map.groupBy(documents, ([, { v: _, ...document }]) => fieldsOf(document, objects));
  const rows = [...byFields].flatMap(([fields, found]) =>
    wrapped(`- ${listed(found.map(([line]) => line))}: ${fields}`, '  '),
  );
  const reasons = Object.entries(notRunHere).map(([name, why]) => `\`${name}\` (${why})`);
  return `# What \`--json\` prints

With \`--json\`, a command prints one JSON document on standard output, on one line. \`v\` is the version of its format (1). Later versions of
rankd may add fields without a new \`v\`, so ignore fields that you do not know. Times are ISO 8601 in UTC, Roblox's ids are numbers, and
missing values are \`null\`.

- \`simulated\` is true if nothing touched Roblox.
- \`next\` is the value of \`--after\` for the next page, or \`null\`.
- \`resolved\` lists the users, roles and keys that the names on the command line refer to. \`warnings\` lists the
  warnings that rankd would print.
- An error is a document on standard error: \`success\` (false), \`code\`, \`error\`, \`message\`, and \`try\` with the next step.

With [jq](https://jqlang.org), this prints the names of the keys that work:

\`\`\`sh
rankd key list --json | jq -r '.keys[] | select(.state == "active").name'
\`\`\`

## Objects that several commands print

${objects.flatMap(({ name, fields }) => wrapped(`- **${name}**: ${fieldsOf(fields)}`, '  ')).join('\n')}

## Each command

${rows.join('\n')}

If no daemon is running, \`status\` has only \`state\` and the fields from \`openChanges\` to the end.
${wrapped(`Not shown here: ${reasons.join(', ')}.`, '').join('\n')}
${wrapped(`These commands always print JSON, whose format \`--json\` does not change: ${listed(fixedFormat)}.`, '').join('\n')}

<!-- test/e2e/json-page.test.ts writes this page, with -u, from what the commands print -->
`;
}

function listed(names: string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

/** e.g. `keys[]` (**key**), `next` */
function fieldsOf(document: Document, objects: Array<{ name: string; fields: Document }> = []): string {
  const described = Object.entries(document).map(([name, value]) => {
    const [first] = Array.isArray(value) ? value : [value];
    const shown = `\`${name}${Array.isArray(value) ? '[]' : ''}\``;
    if (!isObject(first)) return shown;
    const object = objects.find(({ fields }) => Object.keys(fields).every((field) => field in first));
    const others = listed(Object.keys(first).filter((field) => object === undefined || !(field in object.fields)));
    const inner = [object && `**${object.name}**`, others].filter(Boolean);
    return `${shown} (${inner.join(', ')})`;
  });
  return described.join(', ');
}

function isObject(value: unknown): value is Document {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
