import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/input/arguments.ts';
import { discordPublicKey, discordIds as ids } from '../support/discord-interactions.ts';
import { startFakeDiscord } from '../support/fake-discord.ts';
import { startWebhookSink } from '../support/webhook-sink.ts';
import { listenOrExit } from './shell.ts';

/** `npm run fake-discord`: a fake Discord and a program that receives webhooks, for manual tests. Exits on SIGINT. */
const { port, command, to, ...given } = new Command('npm run fake-discord --')
  .description(
    'Simulates a Discord channel with its limits, slash commands, and a program that receives webhooks; ends on Ctrl-C.',
  )
  .option(
    '--port <port>',
    'port of Discord; the program uses the next one; 0: any free ports',
    wholeNumber(0, 65_534),
    7400,
  )
  .option('--command <name>', 'send a slash command through the running fake on this port, print the reply, and exit')
  .option('--user <user>', 'option of the command; so are the next three')
  .option('--rank <rank>')
  .option('--duration <duration>')
  .option('--reason <text>')
  .option('--action <action>', 'option of the command role: add or remove')
  .option('--group-role <role>', 'option of the command role: the role in the group')
  .option('--role <id>', 'the role of the person', ids.hr)
  .option('--as <id>', 'the Discord id of the person', ids.ann)
  .option('--to <url>', 'where rankd is', 'http://127.0.0.1:7265/discord/interactions')
  .parse()
  .opts<
    { port: number; command?: string; to: string; role: string; as: string; groupRole?: string } & Record<
      string,
      string
    >
  >();
if (command !== undefined) {
  const { role, as: userId, groupRole, ...rest } = given;
  const options = { ...rest, ...(groupRole !== undefined && { role: groupRole }) };
  const body = JSON.stringify({ to, command: { name: command, options, roles: [role], userId } });
  const answer = await fetch(`http://127.0.0.1:${port}/fake/command`, { method: 'POST', body }).catch(() => undefined);
  process.stdout.write(
    `${(await answer?.text()) ?? `Start npm run fake-discord first: nothing listens on port ${port}.`}\n`,
  );
  process.exit(answer === undefined ? 1 : 0);
}
const channel = await listenOrExit(startFakeDiscord({ port }));
const sink = await listenOrExit(startWebhookSink({ port: port === 0 ? 0 : port + 1 }));
const print = (line: string) => process.stdout.write(`${line}\n`);
const reported = { messages: 0, violations: 0, events: 0, replies: 0 };
print(`To connect rankd, put this into rankd.yaml:
webhooks: { allow_private: [127.0.0.1] }

rankd() { node ${fileURLToPath(new URL('../../bin/rankd.js', import.meta.url))} "$@"; }
echo ${channel.address} | rankd webhook add log --kind discord
echo ${sink.url} | rankd webhook add bot

Slash commands, with this in rankd.yaml:
discord: { api_base_url: ${channel.apiBaseUrl} }

echo ${channel.discord.botToken} > bot.token
rankd discord setup --application ${ids.application} --public-key ${discordPublicKey} --server ${ids.server} --row ${ids.hr}=hr --token-file bot.token -y
npm run fake-discord -- --command promote --user Newcomer
`);
const reportTimer = setInterval(report, 200);
process.once('SIGINT', async () => {
  clearInterval(reportTimer);
  report();
  await channel[Symbol.asyncDispose]();
  await sink[Symbol.asyncDispose]();
});

function report(): void {
  const { messages, violations } = channel.discord;
  for (const { content, embeds } of messages.slice(reported.messages)) {
    print(
      `discord: ${content ?? ''}${embeds.map(({ title, description }) => `${title}\n  ${description}`).join('\n')}`,
    );
  }
  for (const { content } of channel.discord.replies.slice(reported.replies)) print(`reply: ${content}`);
  for (const violation of violations.slice(reported.violations)) print(`VIOLATION: ${violation}`);
  for (const { body } of sink.received.slice(reported.events)) print(`program: ${body}`);
  Object.assign(reported, {
    messages: messages.length,
    replies: channel.discord.replies.length,
    violations: violations.length,
    events: sink.received.length,
  });
}
