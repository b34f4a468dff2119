import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/input/arguments.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { keepUp, repeat } from '../support/keep-up.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { CliHome } from '../support/run-cli.ts';
import { figuresOf } from '../tools/process-figures.ts';

/** `npm run flood`: measures how much load callers without a key can put on the built daemon. */
const { seconds } = new Command('npm run flood --')
  .description('Floods the built daemon without a key; exits with 1 if a figure exceeds its bound.')
  .option('--seconds <n>', 'how long each flood lasts', wholeNumber(10, 100_000), 60)
  .parse()
  .opts<{ seconds: number }>();

interface Finding {
  what: string;
  figure: string;
  bound: string;
  isWithin: boolean;
}

const env = { RANKD_METRICS_ENABLED: 'true', RANKD_METRICS_PORT: '0', RANKD_DASHBOARD_PORT: '0' };
const floods = [
  nonReadingCallers,
  slowSenders,
  refusedRequests,
  nonReadingScrapers,
  slowSendersOfThePage,
  idleScrapers,
];
for (const flood of floods) {
  using home = new CliHome();
  await using daemon = await DaemonProcess.start(home, { env });
  const { what, figure, bound, isWithin } = await flood(daemon, home);
  process.stdout.write(`${isWithin ? 'ok  ' : 'FAIL'}  ${what}: ${figure} (bound: ${bound})\n`);
  if (!isWithin) process.exitCode = 1;
}

/** Opens 500 connections, each of which sends 400 requests at once and reads no response. */
async function nonReadingCallers(daemon: DaemonProcess): Promise<Finding> {
  const document = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';
  await using _callers = keepUp(daemon.url, 500, (socket) => {
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

/** Opens 1000 connections that trickle a body and reconnect when closed, while other callers connect. */
async function slowSenders(daemon: DaemonProcess): Promise<Finding> {
  const head = 'POST /v1/apikey HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n';
  await using _senders = keepUp(daemon.url, 1_000, (socket) => {
    socket.resume().write(head);
    return repeat(1_500, () => socket.write(' '));
  });
  const { asked, answered } = await askUntil(`${daemon.url}/healthz`);
  const figure = `${answered} of ${asked} others answered`;
  return { what: '1000 slow senders', figure, bound: '99 %', isWithin: answered >= asked * 0.99 };
}

/** Sends several kinds of requests that the daemon refuses, as fast as it responds. */
async function refusedRequests(daemon: DaemonProcess): Promise<Finding> {
  const place = '{"placeid":42}';
  const post = (path: string, body: string, header = 'X: y') =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\n${header}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const kinds = [
    get('/nothing').replace('GET', 'HEAD'),
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
  await using _callers = keepUp(daemon.url, 16, (socket) => {
    let open = 0;
    const send = () => {
      open += kinds.length * 2;
      socket.write(batch);
    };
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      const received = chunk.split('HTTP/1.1 ').length - 1;
      answers += received;
      open -= received;
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

/**
 * Opens 90 connections, each of which sends 12 batches of 400 scrapes and reads no response, while a game verifies its
 * key.
 */
async function nonReadingScrapers(daemon: DaemonProcess, home: CliHome): Promise<Finding> {
  const key = await gameKey(home);
  const scrapes = 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(400);
  await using _callers = keepUp(daemon.metricsUrl ?? '', 90, (socket) => {
    socket.pause();
    let writes = 0;
    return repeat(100, () => {
      writes += 1;
      if (writes <= 12) socket.write(scrapes);
    });
  });
  const times: number[] = [];
  let peakMiB = 0;
  await until(seconds, 50, async () => {
    const startedAt = performance.now();
    const { status } = await daemon.verify(key);
    times.push(status === 200 ? performance.now() - startedAt : Number.POSITIVE_INFINITY);
    peakMiB = Math.max(peakMiB, figuresOf(daemon.process.pid ?? 0).residentMiB);
  });
  const slowest = Math.round(Math.max(...times));
  const what = '90 connections that scrape ahead and never read';
  const figure = `${peakMiB} MiB resident at most, games answered within ${slowest} ms`;
  return { what, figure, bound: '256 MiB, 100 ms', isWithin: peakMiB < 256 && slowest <= 100 };
}

/** Opens 130 connections that trickle a body to the page's server, while the operator connects. */
async function slowSendersOfThePage(_daemon: DaemonProcess, home: CliHome): Promise<Finding> {
  const { origin } = await PageVisitor.withLink(home);
  const head = `POST /api/login HTTP/1.1\r\nHost: ${new URL(origin).host}\r\nContent-Length: 9000\r\n\r\n`;
  await using _senders = keepUp(origin, 130, (socket) => {
    socket.resume().write(head);
    return repeat(1_000, () => socket.write(' '));
  });
  const { asked, answered } = await askUntil(`${origin}/`);
  const figure = `${answered} of ${asked} of the operator's requests answered`;
  return { what: '130 slow senders at the page', figure, bound: 'all', isWithin: answered === asked };
}

/** Opens 990 idle connections to the metrics listener, while other callers connect to the API. */
async function idleScrapers(daemon: DaemonProcess): Promise<Finding> {
  await using _idle = keepUp(daemon.metricsUrl ?? '', 990, () => () => undefined);
  const { asked, answered } = await askUntil(`${daemon.url}/healthz`);
  const figure = `${answered} of ${asked} others answered`;
  return { what: '990 idle connections at metrics', figure, bound: 'all', isWithin: answered === asked };
}

async function gameKey(home: CliHome): Promise<string> {
  const { stdout } = await home.run(['key', 'create', 'game', '--quiet']);
  await home.run(['whitelist', 'add', '1', '-y']);
  return stdout.trim();
}

/** Sends each request on a new connection until the flood ends, and counts the responses with status 200. */
async function askUntil(url: string): Promise<{ asked: number; answered: number }> {
  const counts = { asked: 0, answered: 0 };
  await until(seconds, 250, async () => {
    counts.asked += 1;
    const headers = { connection: 'close' };
    const answer = fetch(url, { headers, signal: AbortSignal.timeout(5_000) });
    const status = await answer.then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) counts.answered += 1;
  });
  return counts;
}

async function until(afterSeconds: number, everyMs: number, work: () => Promise<void>): Promise<void> {
  const end = performance.now() + afterSeconds * 1_000;
  for (; performance.now() < end; await delay(everyMs)) await work();
}
