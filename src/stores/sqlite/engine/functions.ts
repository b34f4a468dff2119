import type Database from 'better-sqlite3';
import { crypto } from '../../../base/node-modules.ts';

/** Defines what migrations call beside SQLite's own functions: `sha256(text)`, in hex. */
export function defineFunctions(database: Database.Database): void {
  database.function('sha256', { deterministic: true, directOnly: true }, (text) =>
    crypto().hash('sha256', String(text)),
  );
}
