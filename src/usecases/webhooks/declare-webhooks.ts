import { webhookFingerprint } from '../../config/compare.ts';
import type { DeclaredWebhook } from '../../config/declared-webhook.ts';
import { ConfigError } from '../../config/problem.ts';
import { newId } from '../../core/api-key.ts';
import type { StillDeclared } from '../../core/declarations.ts';
import { clashesOf, declaredEdit, type WebhookClash } from '../../core/webhooks/declared-webhooks.ts';
import { maxWebhooks, type Webhook } from '../../core/webhooks/webhook.ts';
import type { Ports } from '../../ports/index.ts';
import { addressHash } from './target.ts';

type Tools = Pick<Ports, 'store' | 'clock'>;

/** Throws `config_invalid` if an undeclared webhook has the name or the address of one of these. */
export async function refuseWebhookClashes(
  { store }: Pick<Tools, 'store'>,
  targets: readonly DeclaredWebhook[],
): Promise<void> {
  const refusal = targets.length === 0 ? undefined : refusalOf(targets, await store.listWebhooks());
  if (refusal !== undefined) throw refusal;
}

/**
 * Applies the webhooks of the configuration, and ends those that were removed from it, unless another daemon declares
 * them. Changes nothing if it throws, like `refuseWebhookClashes`. Resolves with those that other daemons declare and
 * this one does not, or differently.
 */
export async function declareWebhooks(
  { store, clock }: Tools,
  targets: readonly DeclaredWebhook[],
): Promise<StillDeclared[]> {
  const kept = await store.listWebhooks();
  if (targets.length === 0 && kept.every(({ declaredIn }) => declaredIn === undefined)) return [];
  const declared = targets.map((target) => {
    const { address, secret: _, at: _at, ...declaration } = target;
    return {
      ...declaration,
      ...(declaration.isForGames && { addressHash: addressHash(address.reveal()) }),
      fingerprint: webhookFingerprint(target),
      id: newId('wh'),
    };
  });
  const doing = { by: 'daemon', at: clock.now() };
  return store.declareWebhooks((facts) => {
    const refusal = refusalOf(targets, facts.webhooks);
    return refusal === undefined ? declaredEdit(declared, facts, doing) : { refusal };
  });
}

function refusalOf(targets: readonly DeclaredWebhook[], webhooks: readonly Webhook[]): ConfigError | undefined {
  const declared = targets.map(({ name, address }) => ({ name, address: address.reveal() }));
  const clashes = clashesOf(declared, webhooks);
  if (clashes.length === 0) return undefined;
  const problems = clashes.map((clash) => ({
    at: targets[clash.index]?.at[clash.field],
    setting: `webhooks.targets[${clash.index}].${clash.field}`,
    text: inWords(clash),
  }));
  return new ConfigError(problems, { file: undefined });
}

function inWords({ field, twin }: WebhookClash): string {
  if (twin === undefined) return `is one too many: there are ${maxWebhooks} webhooks at most`;
  const what = field === 'name' ? 'is the name of' : 'has the address of';
  return `${what} the webhook "${twin.name}", which was made with rankd webhook add; remove that one (rankd webhook remove ${twin.name})`;
}
