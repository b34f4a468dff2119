import type { StoreOperations } from '../../ports/index.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** Whether the database can be read and has the schema of this rankd. Looking does not migrate it. */
export async function databaseFindings(operations: Pick<StoreOperations, 'check'>): Promise<Finding[]> {
  const { schema, newestSchema, checks } = await operations.check();
  const flaw = checks.find((check) => !check.ok);
  if (flaw !== undefined) {
    const fix = 'stop the daemon, then put back a backup: rankd restore FILE';
    return [fail('database', `${flaw.name}: ${flaw.detail}`, fix)];
  }
  if (schema === newestSchema) return [ok('database', `sound, schema ${schema}`)];
  return [warn('database', `schema ${schema} of ${newestSchema}: the next command migrates it`, 'rankd db migrate')];
}
