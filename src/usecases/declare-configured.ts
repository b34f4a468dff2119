import type { Config } from '../config/config.ts';
import type { Ports } from '../ports/index.ts';
import { declareKeys } from './keys/declare-keys.ts';
import { declareWebhooks, refuseWebhookClashes } from './webhooks/declare-webhooks.ts';

/** Puts the keys and webhooks of the configuration in force. Resolves with what the operator should know. Throws `config_invalid`, and changes nothing then. */
export async function declareConfigured(
  app: Pick<Ports, 'store' | 'clock'>,
  { keys, webhooks }: Pick<Config, 'keys' | 'webhooks'>,
): Promise<string[]> {
  await refuseWebhookClashes(app, webhooks.targets);
  const stillDeclared = await declareKeys(app, keys);
  await declareWebhooks(app, webhooks.targets);
  return stillDeclared.map(
    ({ name, nodes }) => `the key "${name}" holds on, as it is still declared by ${nodes.join(', ')}`,
  );
}
