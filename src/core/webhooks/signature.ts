import { crypto } from '../../base/node-modules.ts';

/** The prefix of secrets in Standard Webhooks 1.0.0: https://github.com/standard-webhooks/standard-webhooks */
const prefix = 'whsec_';

export function newWebhookSecret(): string {
  return prefix + crypto().randomBytes(24).toString('base64');
}

export function isWebhookSecret(text: string): boolean {
  const bytes = Buffer.from(text.slice(prefix.length), 'base64');
  return (
    text.startsWith(prefix) && bytes.length >= 24 && bytes.length <= 64 && prefix + bytes.toString('base64') === text
  );
}

/** The headers with which a receiver can verify that rankd sent exactly this, now. Each secret signs. */
export function signedHeaders(
  { id, body, atMs }: { id: string; body: string; atMs: number },
  secrets: readonly string[],
): Record<string, string> {
  const timestamp = String(Math.floor(atMs / 1000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(prefix.length), 'base64');
    return `v1,${crypto().createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
