import { RankdError } from '../../../base/errors.ts';
import { placeOf, type ServerAddress } from '../../../base/net.ts';
import { version as rankdVersion } from '../../../base/version.ts';
import type { Reader } from '../engine/database.ts';
import { migrations } from './migrations.ts';

/** The newest schema that this rankd knows. */
export const newestSchema = migrations.length;

/**
 * How many migrations the database has seen; 0 if rankd keeps nothing in it. Throws `config_invalid` if its schema `rankd` is somebody
 * else's, and `schema_newer` if a later rankd wrote it that this one can't live with.
 */
export async function schemaVersion(db: Reader, address: ServerAddress): Promise<number> {
  const found = await db.get<{ hasSchema: boolean; hasSteps: boolean }>(
    `SELECT to_regnamespace('rankd') IS NOT NULL AS "hasSchema", to_regclass('rankd.schema_steps') IS NOT NULL AS "hasSteps"`,
  );
  if (!found?.hasSchema) return 0;
  if (!found.hasSteps) throw notRankds(address);
  const step = await db.get<{ version: number; livesWith: number; rankd: string }>(
    `SELECT version, lives_with AS "livesWith", rankd FROM rankd.schema_steps ORDER BY version DESC LIMIT 1`,
  );
  if (step === undefined) throw notRankds(address);
  if (step.livesWith > newestSchema) throw schemaNewer(step, address);
  return step.version;
}

function notRankds(address: ServerAddress): RankdError {
  const message = `The schema rankd in ${placeOf(address)} is not rankd's; it was left as it is.`;
  return new RankdError('config_invalid', message, { hint: 'name another database with store.url' });
}

function schemaNewer({ version, rankd }: { version: number; rankd: string }, address: ServerAddress): RankdError {
  return new RankdError(
    'schema_newer',
    `The database ${placeOf(address)} has schema ${version}, written by rankd ${rankd}; this is rankd ${rankdVersion}, which knows up to ${newestSchema}.`,
    { hint: `run rankd ${rankd} or a later one instead` },
  );
}
