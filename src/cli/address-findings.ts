import { lookup } from 'node:dns/promises';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { type ConnectionFailure, connectionFailure, TimedOut } from '../base/connection-cause.ts';
import { hostOf, isPrivate, localUrl } from '../base/net.ts';
import { crypto } from '../base/node-modules.ts';
import { shorten } from '../base/text.ts';
import { isoDay } from '../base/time.ts';
import { proofHeader, proofOf, questionHeader } from '../core/proof.ts';
import { type Finding, fail, ok, warn } from '../usecases/doctor/finding.ts';

const requestTimeoutMs = 5_000;
const dayMs = 86_400_000;
/**
 * If fewer days are left, renewal has probably failed: Let's Encrypt certificates are renewed a month before they
 * expire (https://letsencrypt.org/docs/faq/).
 */
const soonDays = 14;

interface ExpectedDaemon {
  /** The secret from which the daemon computes its proofs. */
  identity: string;
  url: string;
}

/** `daemon` is this data directory's daemon, if it is running. */
export async function addressFindings(url: string, daemon: ExpectedDaemon | undefined): Promise<Finding[]> {
  const target = new URL(url);
  const { port, protocol } = target;
  const host = hostOf(target);
  const addresses = isIP(host) > 0 ? [host] : await addressesOf(host);
  if (!Array.isArray(addresses)) return [...portFindings(port), addresses];
  const findings = [...portFindings(port), nameFinding(host, addresses)];
  const question = crypto().randomBytes(16).toString('base64url');
  const authorization = `Bearer ${question}`; // part of the proof, to detect a proxy that removes this header
  const visit = await visited(`${url}/healthz`, { [questionHeader]: question, authorization });
  if ('failure' in visit) return [...findings, noResponse(url, visit.failure, addresses)];
  const { certificate, distrust } = visit;
  const ofTls = protocol === 'https:' ? [certificateFinding(certificate, distrust, host)] : [];
  const proof = visit.headers[proofHeader];
  const isProof = (authorization?: string) =>
    daemon !== undefined && proof === proofOf(daemon.identity, { question, authorization });
  const isProven = isProof(authorization);
  return [...findings, ...ofTls, answerFinding(visit, { daemon, isProven, isStripped: !isProven && isProof() })];
}

/** Checks that requests from Discord reach this daemon, which must refuse an unsigned request. */
export async function discordAddressFinding(url: string, daemon: ExpectedDaemon): Promise<Finding> {
  const endpoint = `${url}/discord/interactions`;
  const question = crypto().randomBytes(16).toString('base64url');
  const visit = await visited(endpoint, { [questionHeader]: question }, '{"type":1}');
  const fix = `configure the proxy or the tunnel to forward ${endpoint} to ${localUrl(daemon.url)}, with headers and body unchanged`;
  if ('failure' in visit)
    return fail('discord', `${endpoint} can't be reached: ${visit.failure.words}`, visit.failure.hint);
  const isOurs = visit.headers[proofHeader] === proofOf(daemon.identity, { question, authorization: undefined });
  if (isOurs && visit.status === 401) return ok('discord', `${endpoint} reaches this daemon`);
  if (visit.status !== 401)
    return fail('discord', `${endpoint} returns ${visit.status} for an unsigned request, not 401`, fix);
  return fail('discord', `requests to ${endpoint} reach a different program`, fix);
}

/**
 * Checks that game servers can reach the port. Roblox blocks some ports:
 * https://create.roblox.com/docs/cloud-services/http-service
 */
function portFindings(port: string): Finding[] {
  const number = Number(port || 443);
  const isOpen = number === 80 || number === 443 || (number >= 1024 && number !== 1194);
  if (isOpen) return [];
  return [fail('address', `games can't reach port ${number}`, 'use port 443, or any port from 1024 up except 1194')];
}

async function addressesOf(host: string): Promise<string[] | Finding> {
  try {
    const found = await lookup(host, { all: true });
    return found.map(({ address }) => address);
  } catch (error) {
    const fix = `create a DNS record for ${host}: for a machine, A (and AAAA for IPv6) with its public address; for a tunnel, as the tunnel's provider describes`;
    const { cause, words, hint } = connectionFailure(error, { at: host });
    return fail('name', `${host} can't be reached: ${words}`, cause === 'name_unknown' ? fix : hint);
  }
}

function nameFinding(host: string, addresses: string[]): Finding {
  const inside = addresses.filter(isPrivate);
  if (inside.length === 0) return ok('name', `${host} resolves to ${addresses.join(', ')}`);
  if (isIP(host) !== 0)
    return warn('name', `Roblox's servers can't reach ${host}`, 'use a public address: a name with TLS, or a tunnel');
  const fix = `look up ${host} from another network; if its address is the same there, correct its DNS record`;
  return warn('name', `${host} resolves to ${inside.join(', ')} here, which Roblox's servers can't reach`, fix);
}

interface Visit {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
  certificate: PeerCertificate | undefined;
  distrust: string | undefined;
}

/** Accepts an invalid certificate, because the request contains no secret. */
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

function noResponse(url: string, { cause, words }: ConnectionFailure, addresses: string[]): Finding {
  const start = url.startsWith('https:')
    ? 'start the proxy or the tunnel (docs/hosting.md)'
    : 'start rankd and, if you use one, the proxy or the tunnel (docs/hosting.md)';
  const text = `${url} can't be reached from here: ${words}`;
  if (!['refused', 'timed_out', 'unreachable'].includes(cause)) {
    const check = ['no_tls', 'tls_failed'].includes(cause) ? 'certificate' : 'answer';
    return fail(check, text, 'check the proxy or the tunnel: its log has the reason');
  }
  if (addresses.some(isPrivate)) return fail('reach', text, start);
  const elsewhere = `open ${url}/healthz from outside your network, such as on a phone with Wi-Fi off. If it shows {"status":"ok"}, all is well: some routers can't reach their own public address from inside`;
  return fail('reach', text, `${elsewhere}. If not, ${start}, and open the port in the firewall and the router`);
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
    const [detail, fix] = flaws[distrust]?.(host, certificate, until) ?? [
      '',
      `check the proxy's log, or get a new certificate; ${automatic}`,
    ];
    return fail('certificate', `${words}${detail}, so games reject it`, fix);
  }
  const days = Math.floor((endsAt - Date.now()) / dayMs);
  if (days >= soonDays) return ok('certificate', `valid until ${until}`);
  return warn(
    'certificate',
    `expires on ${until} and has not been renewed yet`,
    `check the proxy's log for the reason; ${automatic}`,
  );
}

const automatic = 'Caddy and the tunnels get certificates automatically';

/** Keyed by TLS error code: a detail to add to the message, and the fix. */
const flaws: Record<
  string,
  (host: string, certificate: PeerCertificate | undefined, until: string) => [string, string]
> = {
  CERT_HAS_EXPIRED: (_host, _certificate, until) => [`; it was valid until ${until}`, `renew it; ${automatic}`],
  CERT_NOT_YET_VALID: () => ['', "check this machine's clock; if it is right, get a new certificate"],
  ERR_TLS_CERT_ALTNAME_INVALID: (host, certificate) => [
    `; it is for ${shorten(certificate?.subjectaltname ?? 'no name', 100)}, not for ${host}`,
    `get one for ${host}; if your router answered with this one, check from outside your network`,
  ],
  DEPTH_ZERO_SELF_SIGNED_CERT: () => ['; it is self-signed', `get one from Let's Encrypt; ${automatic}`],
  SELF_SIGNED_CERT_IN_CHAIN: () => ['; it comes from an unknown authority', `get one from Let's Encrypt; ${automatic}`],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: () => [
    '; it comes without the rest of its chain',
    "configure the proxy to send the whole chain (fullchain.pem), from a known authority such as Let's Encrypt",
  ],
};

function answerFinding(
  { status, headers, body }: Visit,
  { daemon, isProven, isStripped }: { daemon: ExpectedDaemon | undefined; isProven: boolean; isStripped: boolean },
): Finding {
  const point = `point the proxy or the tunnel at ${daemon === undefined ? 'rankd' : localUrl(daemon.url)}`;
  if (status >= 300 && status < 400) {
    const to = shorten(headers.location ?? 'nowhere', 200);
    return fail(
      'answer',
      `it redirects games to ${to}`,
      'if rankd answers there, set server.public_url to that address without /healthz, and use it in the game; otherwise, turn off the redirect in the proxy or the tunnel',
    );
  }
  if (status >= 502) {
    const fix = daemon === undefined ? `start rankd, and ${point}` : point;
    return fail('answer', `the proxy can't reach rankd (status ${status})`, fix);
  }
  if (status !== 200 || !isHealth(body)) {
    return fail(
      'answer',
      `the program that answers is not rankd (status ${status})`,
      `${point}, without a login or warning page in between`,
    );
  }
  if (isProven) return ok('answer', 'it is this daemon');
  if (isStripped) {
    const text = 'it is this daemon, but requests arrive without the Authorization header, which carries the game key';
    return fail(
      'answer',
      text,
      'configure the proxy or the tunnel to forward that header, or use a different proxy or tunnel',
    );
  }
  if (daemon === undefined) {
    const fix = "run this on the daemon's machine, with its --data-dir, to check that it is the right daemon";
    return warn('answer', 'a rankd daemon answers, but none is running on this data directory', fix);
  }
  return fail('answer', 'a different rankd daemon answers, not the one of this data directory', point);
}

function isHealth(body: string): boolean {
  try {
    return JSON.parse(body)?.status === 'ok';
  } catch {
    return false;
  }
}
