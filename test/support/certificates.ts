import { generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';

/** A TLS server's certificate and key, in PEM format. */
export interface Credentials {
  cert: string;
  key: string;
}

interface Wanted {
  name: string;
  /** Days until the certificate expires; negative if it already has. */
  endsInDays?: number;
  /**
   * Days until the certificate becomes valid. The default is in the past: a day ago, or a day before the certificate
   * expired.
   */
  beginsInDays?: number;
}

/** A certificate authority. `pem` is its certificate, for clients that must trust it. */
export class Authority {
  readonly #name = `Test Authority ${randomBytes(4).toString('hex')}`;
  readonly #keys = newKeys();
  readonly pem = certificate({ name: this.#name, isAuthority: true }, this.#keys.publicKey, this.#issuer);

  issue(wanted: Wanted): Credentials {
    const { publicKey, privateKey } = newKeys();
    return { cert: certificate(wanted, publicKey, this.#issuer), key: pemOf(privateKey) };
  }

  get #issuer() {
    return { name: this.#name, key: this.#keys.privateKey };
  }
}

export function selfSigned(wanted: Wanted): Credentials {
  const { publicKey, privateKey } = newKeys();
  return { cert: certificate(wanted, publicKey, { name: wanted.name, key: privateKey }), key: pemOf(privateKey) };
}

function newKeys() {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** Encodes and signs a certificate (RFC 5280). Node.js can read certificates, but not create them. */
function certificate(
  {
    name,
    endsInDays = 365,
    beginsInDays = Math.min(endsInDays, 0) - 1,
    isAuthority = false,
  }: Wanted & { isAuthority?: boolean },
  holder: KeyObject,
  issuer: { name: string; key: KeyObject },
): string {
  const algorithm = sequence(oid('2a8648ce3d040302')); // ecdsa-with-SHA256
  const extensions = isAuthority
    ? sequence(oid('551d13'), der(0x01, Buffer.of(0xff)), der(0x04, sequence(der(0x01, Buffer.of(0xff)))))
    : sequence(oid('551d11'), der(0x04, sequence(der(0x82, Buffer.from(name)))));
  const content = sequence(
    der(0xa0, der(0x02, Buffer.of(2))), // version 3
    der(0x02, Buffer.concat([Buffer.of(1), randomBytes(8)])), // serial number
    algorithm,
    distinguishedName(issuer.name),
    sequence(time(beginsInDays), time(endsInDays)),
    distinguishedName(name),
    holder.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(extensions)),
  );
  const signature = sign('sha256', content, issuer.key);
  return new X509Certificate(sequence(content, algorithm, der(0x03, Buffer.of(0), signature))).toString();
}

function distinguishedName(text: string): Buffer {
  return sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(text))))); // commonName
}

function time(inDays: number): Buffer {
  const text = new Date(Date.now() + inDays * 86_400_000).toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return der(0x17, Buffer.from(text.slice(2)));
}

function sequence(...contents: Buffer[]): Buffer {
  return der(0x30, ...contents);
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const size = content.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.of(tag, ...length), content]);
}
