import { lookup } from 'node:dns/promises';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { type ConnectionFailure, connectionFailure, TimedOut } from '../base/connection-cause.ts';
import { hostOf, isPrivate } from '../base/net.ts';
import { crypto } from '../base/node-modules.ts';
import { shorten } from '../base/text.ts';
import { isoDay } from '../base/time.ts';
import { proofHeader, proofOf, questionHeader } from '../core/proof.ts';
import { type Finding, fail, ok, warn } from '../usecases/doctor/finding.ts';

/**
 * Checks the address where games reach rankd from the outside: its name, its certificate, and the program that answers.
 */

const requestTimeoutMs = 5_000;
const dayMs = 86_400_000;
/** Let's Encrypt's certificates are renewed a month before their end: https://letsencrypt.org/docs/faq/ */
const soonDays = 14;

interface SoughtDaemon {
  /** The identity that its proofs are made with. */
  identity: string;
  /** The address where it listens on this machine. */
  url: string;
}

/** `daemon`: the daemon of this data directory, if one runs. */
export async function addressFindings(url: string, daemon: SoughtDaemon | undefined): Promise<Finding[]> {
  const target = new URL(url);
  const { port, protocol } = target;
  const host = hostOf(target);
  const addresses = isIP(host) > 0 ? [host] : await addressesOf(host);
  if (!Array.isArray(addresses)) return [...portFindings(port), addresses];
  const findings = [...portFindings(port), nameFinding(host, addresses)];
  const question = crypto().randomBytes(16).toString('base64url');
  const authorization = `Bearer ${question}`; // sent the way a key would be
  const visit = await visited(`${url}/healthz`, { [questionHeader]: question, authorization });
  if ('failure' in visit) return [...findings, silence(url, visit.failure, addresses)];
  const { certificate, distrust } = visit;
  const ofTls = protocol === 'https:' ? [certificateFinding(certificate, distrust, host)] : [];
  const proof = visit.headers[proofHeader];
  const isProof = (authorization?: string) =>
    daemon !== undefined && proof === proofOf(daemon.identity, { question, authorization });
  const isProven = isProof(authorization);
  return [...findings, ...ofTls, answerFinding(visit, { daemon, isProven, isStripped: !isProven && isProof() })];
}

/** Whether the address that Discord posts to leads to this daemon: an unsigned request is refused there, by it. */
export async function discordAddressFinding(url: string, daemon: SoughtDaemon): Promise<Finding> {
  const endpoint = `${url}/discord/interactions`;
  const question = crypto().randomBytes(16).toString('base64url');
  const visit = await visited(endpoint, { [questionHeader]: question }, '{"type":1}');
  const fix = `let the proxy or the tunnel forward ${endpoint} to ${daemon.url}, with headers and body unchanged`;
  if ('failure' in visit)
    return fail('discord', `${endpoint} can't be reached: ${visit.failure.words}`, visit.failure.hint);
  const isOurs = visit.headers[proofHeader] === proofOf(daemon.identity, { question, authorization: undefined });
  if (isOurs && visit.status === 401) return ok('discord', `${endpoint} leads here`);
  if (visit.status !== 401)
    return fail('discord', `${endpoint} answers ${visit.status}, not 401, to a request without a signature`, fix);
  return fail('discord', `another program refuses requests at ${endpoint}`, fix);
}

/** Game servers may use these only: https://create.roblox.com/docs/cloud-services/http-service */
function portFindings(port: string): Finding[] {
  const number = Number(port || 443);
  const isOpen = number === 80 || number === 443 || (number >= 1024 && number !== 1194);
  if (isOpen) return [];
  return [fail('address', `games can't reach port ${number}`, 'use 443, or a port from 1024 up except 1194')];
}

async function addressesOf(host: string): Promise<string[] | Finding> {
  try {
    const found = await lookup(host, { all: true });
    return found.map(({ address }) => address);
  } catch (error) {
    const fix = `make a DNS record for ${host} (A, and AAAA for IPv6) with the public address of the machine, or of the tunnel`;
    const { cause, words, hint } = connectionFailure(error, { at: host });
    return fail('name', `${host} can't be reached: ${words}`, cause === 'name_unknown' ? fix : hint);
  }
}

function nameFinding(host: string, addresses: string[]): Finding {
  const inside = addresses.filter(isPrivate);
  if (inside.length === 0) return ok('name', `${host} is ${addresses.join(', ')}`);
  if (isIP(host) !== 0)
    return warn('name', `Roblox's servers can't reach ${host}`, 'use a public address: a name with TLS, or a tunnel');
  const fix = `look it up from another network; if the address of ${host} is the same there, correct its DNS record`;
  return warn('name', `${host} is ${inside.join(', ')} here, which Roblox's servers can't reach`, fix);
}

interface Visit {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
  certificate: PeerCertificate | undefined;
  /** The reason why the certificate is not trusted. */
  distrust: string | undefined;
}

/** Makes one request, whether or not the certificate is valid: it sends nothing secret. */
async function visited(
  url: string,
  headers: Record<string, string>,
  body?: string,
): Promise<Visit | { failure: ConnectionFailure }> {
  const signal = AbortSignal.timeout(requestTimeoutMs);
  const request = url.startsWith('https:') ? httpsRequest : httpRequest;
  try {
    return await new Promise<Visit>((resolve, reject) => {
      const method = body === undefined ? 'GET' : 'POST';
      request(url, { method, headers, agent: false, signal, rejectUnauthorized: false }, (response) => {
        const socket = response.socket as Partial<TLSSocket>;
        const certificate = socket.getPeerCertificate?.();
        const distrust = socket.authorized === false ? String(socket.authorizationError) : undefined;
        const { statusCode: status = 0, headers } = response;
        beginningOf(response).then((body) => resolve({ status, headers, body, certificate, distrust }), reject);
      })
        .on('error', reject)
        .end(body);
    });
  } catch (error) {
    const failure = signal.aborted ? new TimedOut(`${requestTimeoutMs / 1000} s`) : error;
    return { failure: connectionFailure(failure, { at: url }) };
  }
}

const maxBody = 1_000;

async function beginningOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk;
    if (text.length > maxBody) break;
  }
  return text;
}

function silence(url: string, { cause, words }: ConnectionFailure, addresses: string[]): Finding {
  const start = 'start the proxy or the tunnel (docs/hosting.md)';
  const text = `${url} can't be reached from here: ${words}`;
  if (!['refused', 'timed_out', 'unreachable'].includes(cause)) {
    const check = ['no_tls', 'tls_failed'].includes(cause) ? 'certificate' : 'answer';
    return fail(check, text, 'check the proxy or the tunnel: its log has the reason');
  }
  if (addresses.some(isPrivate)) return fail('reach', text, start);
  const elsewhere = `open ${url}/healthz from elsewhere, such as a phone without Wi-Fi. If that shows {"status":"ok"}, all is well: from inside, some routers do not reach their own public address`;
  return fail('reach', text, `${elsewhere}. If not, ${start}, and let the port through firewall and router`);
}

function certificateFinding(
  certificate: PeerCertificate | undefined,
  distrust: string | undefined,
  host: string,
): Finding {
  const endsAt = Date.parse(certificate?.valid_to ?? '');
  const until = Number.isNaN(endsAt) ? '' : isoDay(endsAt);
  if (distrust !== undefined) {
    const { words } = connectionFailure(Object.assign(new Error(distrust), { code: distrust }), { at: host });
    const [detail, fix] = flaws[distrust]?.(host, certificate, until) ?? ['', otherwise];
    return fail('certificate', `${words}${detail}: no game accepts it`, fix);
  }
  const days = Math.floor((endsAt - Date.now()) / dayMs);
  if (days >= soonDays) return ok('certificate', `valid until ${until}`);
  return warn(
    'certificate',
    `valid until ${until} only, and not renewed yet`,
    `see why the proxy does not renew it: ${otherwise}`,
  );
}

const otherwise = 'its log says so; Caddy and the tunnels get certificates by themselves';

/**
 * Explanations by OpenSSL's error code: details that its message leaves out, and the fix for the owner of the
 * certificate.
 */
const flaws: Record<
  string,
  (host: string, certificate: PeerCertificate | undefined, until: string) => [string, string]
> = {
  CERT_HAS_EXPIRED: (_host, _certificate, until) => [`, on ${until}`, `renew it; ${otherwise}`],
  CERT_NOT_YET_VALID: () => ['', 'set the clock of the machine that made it'],
  ERR_TLS_CERT_ALTNAME_INVALID: (host, certificate) => [
    `, not for ${host} but for ${shorten(certificate?.subjectaltname ?? 'no name', 100)}`,
    `get one for ${host}; if that is your router's, it answers only inside your network: check from elsewhere`,
  ],
  DEPTH_ZERO_SELF_SIGNED_CERT: () => [', it is self-signed', `get one from Let's Encrypt; ${otherwise}`],
  SELF_SIGNED_CERT_IN_CHAIN: () => [', it comes from an unknown authority', `get one from Let's Encrypt; ${otherwise}`],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: () => [
    ', it comes without the rest of its chain',
    "let the proxy send the whole chain (the file fullchain.pem), from a known authority, such as Let's Encrypt",
  ],
};

function answerFinding(
  { status, headers, body }: Visit,
  { daemon, isProven, isStripped }: { daemon: SoughtDaemon | undefined; isProven: boolean; isStripped: boolean },
): Finding {
  const point = `point the proxy or the tunnel at ${daemon?.url ?? 'rankd'}`;
  if (status >= 300 && status < 400) {
    const to = shorten(headers.location ?? 'nowhere', 200);
    return fail('answer', `it redirects games to ${to}`, 'give games the address that answers: server.public_url');
  }
  if (status >= 502)
    return fail('answer', `the proxy cannot reach rankd (status ${status})`, `start rankd, and ${point}`);
  if (status !== 200 || !isHealth(body)) {
    return fail(
      'answer',
      `the program that answers is not rankd (status ${status})`,
      `${point}, without a page in between`,
    );
  }
  if (isProven) return ok('answer', 'it is this daemon');
  if (isStripped) {
    const text = 'it is this daemon, but the header Authorization does not come through, so no game key does';
    return fail('answer', text, 'let the proxy or the tunnel pass on that header, or use another one');
  }
  if (daemon === undefined) {
    const fix = 'run this where the daemon runs, with its --data-dir, to confirm that it is that daemon';
    return warn('answer', 'a rankd answers; none runs on this data directory', fix);
  }
  return fail('answer', 'another rankd answers, not the one of this data directory', point);
}

function isHealth(body: string): boolean {
  try {
    return JSON.parse(body)?.status === 'ok';
  } catch {
    return false;
  }
}
