import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/input/arguments.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';
import { figuresOf } from '../tools/process-figures.ts';

/** `npm run flood`: what callers without a key can cost the built daemon; ends with 1 where a figure is beyond its bound. */
const { seconds } = new Command('npm run flood --')
  .description('Floods the built daemon without a key; ends with 1 where a figure is beyond its bound.')
  .option('--seconds <n>', 'how long each flood lasts', wholeNumber(10, 100_000), 60)
  .parse()
  .opts<{ seconds: number }>();

/** Answers of a daemon that is flooded, and what it cost. */
interface Finding {
  what: string;
  figure: string;
  bound: string;
  isWithin: boolean;
}

const floods = [deafCallers, slowSenders, refusedRequests];
for (const flood of floods) {
  using home = new CliHome();
  await using daemon = await DaemonProcess.start(home);
  const { what, figure, bound, isWithin } = await flood(daemon);
  process.stdout.write(`${isWithin ? 'ok  ' : 'FAIL'}  ${what}: ${figure} (bound: ${bound})\n`);
  if (!isWithin) process.exitCode = 1;
}

/** 500 connections send hundreds of requests at once and never read. */
async function deafCallers(daemon: DaemonProcess): Promise<Finding> {
  const document = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';
  await using _callers = keepUp(daemon, 500, (socket) => {
    socket.pause().write(document.repeat(400));
    return () => undefined;
  });
  let peakMiB = 0;
  await until(seconds, 200, async () => {
    peakMiB = Math.max(peakMiB, figuresOf(daemon.process.pid ?? 0).residentMiB);
  });
  const what = '500 connections that send ahead and never read';
  return { what, figure: `${peakMiB} MiB resident at most`, bound: '256', isWithin: peakMiB < 256 };
}

/** 1000 connections send a byte of a body now and then, and come again when they are ended. Others ask on new connections meanwhile. */
async function slowSenders(daemon: DaemonProcess): Promise<Finding> {
  const head = 'POST /v1/apikey HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n';
  await using _senders = keepUp(daemon, 1_000, (socket) => {
    socket.resume().write(head);
    return repeat(1_500, () => socket.write(' '));
  });
  let [asked, answered] = [0, 0];
  await until(seconds, 250, async () => {
    asked += 1;
    const headers = { connection: 'close' };
    const status = await fetch(`${daemon.url}/healthz`, { headers, signal: AbortSignal.timeout(5_000) }).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) answered += 1;
  });
  const figure = `${answered} of ${asked} others answered`;
  return { what: '1000 slow senders', figure, bound: '99 %', isWithin: answered >= asked * 0.99 };
}

/** Requests of every kind that is refused, as many as the daemon answers. */
async function refusedRequests(daemon: DaemonProcess): Promise<Finding> {
  const place = '{"placeid":42}';
  const post = (path: string, body: string, header = 'X: y') =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\n${header}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const kinds = [
    get('/docs').replace('GET', 'HEAD'),
    get('/v1/ranker'),
    get(`/${'fifteen-letters/'.repeat(12)}`),
    post('/v1/apikey', '{}'),
    post('/v1/apikey', 'no JSON'),
    post('/v1/apikey', place),
    post('/v1/apikey', place, 'Authorization: Bearer rk_live_nonsense'),
    post('/v1/ranker?placeid=42', '{}', 'Authorization: Bearer rk_live_nonsense'),
  ];
  const batch = [...kinds, ...kinds].join('');
  let answers = 0;
  await using _callers = keepUp(daemon, 16, (socket) => {
    let open = 0;
    const send = () => {
      open += kinds.length * 2;
      socket.write(batch);
    };
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      const came = chunk.split('HTTP/1.1 ').length - 1;
      answers += came;
      open -= came;
      if (open === 0) send();
    });
    send();
    return () => undefined;
  });
  await delay(5_000);
  const before = { bytes: daemon.log.length, answers };
  await delay(seconds * 1_000);
  const perHour = before.bytes + ((daemon.log.length - before.bytes) / seconds) * 3_600;
  const perSecond = Math.round((answers - before.answers) / seconds);
  const figure = `${(perHour / 1e6).toFixed(2)} MB of log in the first hour`;
  return { what: `${perSecond} refused requests a second`, figure, bound: '1', isWithin: perHour <= 1e6 };
}

/** Keeps that many connections open until it is disposed of. `begin` is called for each, and returns what ends its work. */
function keepUp(daemon: DaemonProcess, count: number, begin: (socket: net.Socket) => () => void) {
  const sockets = new Set<net.Socket>();
  let isOver = false;
  const open = () => {
    if (isOver) return;
    const socket = net.connect(Number(new URL(daemon.url).port), '127.0.0.1');
    sockets.add(socket);
    socket.on('error', () => undefined); // cut connections are part of the game
    let end: () => void = () => undefined;
    socket.once('connect', () => {
      end = begin(socket);
    });
    socket.once('close', () => {
      end();
      sockets.delete(socket);
      setTimeout(open, 100);
    });
  };
  for (let index = 0; index < count; index += 1) open();
  return {
    async [Symbol.asyncDispose]() {
      isOver = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

function repeat(everyMs: number, work: () => void): () => void {
  work();
  const timer = setInterval(work, everyMs);
  return () => clearInterval(timer);
}

async function until(afterSeconds: number, everyMs: number, work: () => Promise<void>): Promise<void> {
  const end = performance.now() + afterSeconds * 1_000;
  for (; performance.now() < end; await delay(everyMs)) await work();
}
