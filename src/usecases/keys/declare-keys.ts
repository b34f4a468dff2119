import type { DeclaredKey } from '../../config/declared-key.ts';
import { ConfigError } from '../../config/problem.ts';
import { newId } from '../../core/api-key.ts';
import type { StillDeclared } from '../../core/declarations.ts';
import { type DeclarationClash, judgeDeclarations } from '../../core/declared-keys.ts';
import type { Ports } from '../../ports/index.ts';

/**
 * Applies the keys of the configuration, and ends those that were removed from it. Throws `config_invalid` without a
 * change if an undeclared key has the name or the secret of one of them. Resolves with those that other daemons declare
 * and this one does not, or differently.
 */
export async function declareKeys(
  { store, clock }: { store: Pick<Ports['store'], 'declareKeys'>; clock: Pick<Ports['clock'], 'now'> },
  declared: readonly DeclaredKey[],
): Promise<StillDeclared[]> {
  const declarations = declared.map((key) => ({ ...key, id: newId('key') }));
  const actor = { by: 'daemon', at: clock.now() };
  const { clashes, stillDeclared } = await store.declareKeys(declarations, judgeDeclarations(declarations, actor));
  if (clashes.length === 0) return stillDeclared;
  const problems = clashes.map((clash) => ({
    at: declared[clash.index]?.at[clash.field],
    setting: `keys[${clash.index}].${clash.field}`,
    text: inWords(clash),
  }));
  throw new ConfigError(problems, { file: undefined });
}

function inWords({ field, key: { id, name, revokedAt } }: DeclarationClash): string {
  const which = `the key "${name}" (${id}), which was made with rankd key create`;
  if (field === 'name')
    return `is the name of ${which}; revoke that one (rankd key revoke ${name}) or choose another name`;
  const what = revokedAt === undefined ? 'is that of' : 'is that of the revoked secret of';
  return `${what} ${which}; make a new secret with rankd key hash --new FILE`;
}
