import { statSync } from 'node:fs';
import { codeOf, RankdError } from '../../../base/errors.ts';
import type { StoreCheck, StoreReport } from '../../../ports/index.ts';
import type { Connection } from '../engine/connection.ts';
import { schemaFlaws } from '../schema/schema-flaws.ts';
import { examine, newestSchema } from './examine.ts';
import { onExisting } from './existing.ts';

export function checkDatabase(dataDir: string): StoreReport {
  return onExisting(dataDir, (db) => {
    try {
      return reportOn(db);
    } catch (error) {
      if (!isDamage(error)) throw error;
      const detail = String((error.cause as Error).message);
      return { schema: undefined, newestSchema, checks: [{ name: 'integrity', ok: false, detail }], mend };
    }
  });
}

function reportOn(db: Connection): StoreReport {
  const { schema, rows, damage, danglingRows } = examine(db);
  const checks = [
    found('integrity', damage, 'every page can be read and every index fits'),
    found('references', danglingRows, 'every row refers to rows that exist'),
    found('schema', schemaFlaws(db, schema), `${schema}, the newest this rankd knows is ${newestSchema}`),
    {
      name: 'rows',
      ok: true,
      detail: `${rows.keys} keys, ${rows.whitelist} whitelist entries, ${rows.changes} changes, ${rows.auditEvents} audit events`,
    },
    { name: 'size', ok: true, detail: `${bytesOf(db.file)} bytes, write-ahead log ${bytesOf(`${db.file}-wal`)} bytes` },
  ];
  return { schema, newestSchema, checks, mend };
}

const mend = 'stop the daemon, then put back a backup: rankd restore FILE';

const maxShown = 3;

function found(name: string, flaws: string[], fine: string): StoreCheck {
  if (flaws.length === 0) return { name, ok: true, detail: fine };
  const more = flaws.length > maxShown ? [`and ${flaws.length - maxShown} more`] : [];
  return { name, ok: false, detail: [...flaws.slice(0, maxShown), ...more].join('; ') };
}

function bytesOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function isDamage(error: unknown): error is RankdError {
  return error instanceof RankdError && codeOf(error.cause).startsWith('SQLITE_CORRUPT');
}
