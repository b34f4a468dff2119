import type { Config } from '../config/config.ts';
import type { StillDeclared } from '../core/declarations.ts';
import type { Ports } from '../ports/index.ts';
import { declareKeys } from './keys/declare-keys.ts';
import { declareWebhooks, refuseWebhookClashes } from './webhooks/edit-webhooks.ts';

/**
 * Applies the keys and webhooks of the configuration. Resolves with notes for the operator. Throws `config_invalid`
 * without any change.
 */
export async function declareConfigured(
  app: Pick<Ports, 'store' | 'clock'>,
  { keys, webhooks }: Pick<Config, 'keys' | 'webhooks'>,
): Promise<string[]> {
  await refuseWebhookClashes(app, webhooks.targets);
  const stillDeclared = await declareKeys(app, keys);
  const webhooksElsewhere = await declareWebhooks(app, webhooks.targets);
  return [
    ...stillDeclared.map((one) => inWords('key', one)),
    ...webhooksElsewhere.map((one) => inWords('webhook', one)),
  ];
}

function inWords(what: 'key' | 'webhook', { name, nodes, inForce }: StillDeclared): string {
  const others = nodes.join(', ');
  if (inForce === undefined) return `the ${what} "${name}" holds on, as it is still declared by ${others}`;
  const whose = inForce === 'own' ? 'that is the one of this daemon' : 'that is not the one of this daemon';
  return `the ${what} "${name}" is declared otherwise by ${others}; the newest declaration holds, and ${whose}`;
}
