import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/input/arguments.ts';
import { startFakeDiscord } from '../support/fake-discord.ts';
import { startWebhookSink } from '../support/webhook-sink.ts';
import { listenOrExit } from './shell.ts';

/**
 * `npm run fake-discord`: a Discord channel, and a program that accepts webhooks, to try rankd by hand. Ends on SIGINT.
 */
const { port } = new Command('npm run fake-discord --')
  .description('Plays a channel of Discord with its limits, and a program that takes webhooks; ends on Ctrl-C.')
  .option(
    '--port <port>',
    'where Discord is, the program on the next port; 0: both on any free one',
    wholeNumber(0, 65_534),
    7400,
  )
  .parse()
  .opts<{ port: number }>();
const channel = await listenOrExit(startFakeDiscord({ port }));
const sink = await listenOrExit(startWebhookSink({ port: port === 0 ? 0 : port + 1 }));
const say = (line: string) => process.stdout.write(`${line}\n`);
const seen = { messages: 0, violations: 0, events: 0 };
say(`rankd on them, with this in rankd.yaml:
webhooks: { allow_private: [127.0.0.1] }

rankd() { node ${fileURLToPath(new URL('../../bin/rankd.js', import.meta.url))} "$@"; }
echo ${channel.address} | rankd webhook add log --kind discord
echo ${sink.url} | rankd webhook add bot
`);
const watching = setInterval(report, 200);
process.once('SIGINT', async () => {
  clearInterval(watching);
  report();
  await channel[Symbol.asyncDispose]();
  await sink[Symbol.asyncDispose]();
});

function report(): void {
  const { messages, violations } = channel.discord;
  for (const { content, embeds } of messages.slice(seen.messages)) {
    say(`discord: ${content ?? ''}${embeds.map(({ title, description }) => `${title}\n  ${description}`).join('\n')}`);
  }
  for (const violation of violations.slice(seen.violations)) say(`VIOLATION: ${violation}`);
  for (const { body } of sink.received.slice(seen.events)) say(`program: ${body}`);
  Object.assign(seen, { messages: messages.length, violations: violations.length, events: sink.received.length });
}
