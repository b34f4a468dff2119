import { maxReasonLength } from '../../core/model.ts';
import { FieldError } from './answers.ts';

type Fields = Record<string, unknown>;

/** A text that names something. */
export function textIn(fields: Fields, name: string, max: number): string {
  const value = fields[name];
  if (typeof value === 'string' && value !== '' && value.length <= max) return value;
  throw new FieldError(name, `must be a text of 1 to ${max} characters`);
}

export function isTrueOf(fields: Fields, name: string): boolean {
  const value = fields[name] ?? false;
  if (typeof value === 'boolean') return value;
  throw new FieldError(name, 'must be true or false');
}

export function userIdIn({ user }: Fields): number {
  if (Number.isSafeInteger(user) && (user as number) > 0) return user as number;
  throw new FieldError('user', 'must be a user id: a whole number above 0');
}

export function reasonIn({ reason }: Fields): string | undefined {
  if (reason === undefined || reason === null || reason === '') return undefined;
  if (typeof reason === 'string' && [...reason].length <= maxReasonLength) return reason;
  throw new FieldError('reason', `must be a text of at most ${maxReasonLength} characters`);
}

export function changeIdsIn({ ids }: Fields, max: number): string[] {
  if (!Array.isArray(ids)) throw new FieldError('ids', 'must be a list of ids of rank changes');
  return checkedIds('ids', ids, max);
}

/** Ids of rank changes, each once. The store checks if they exist. */
export function checkedIds(name: string, ids: unknown[], max: number): string[] {
  const isId = (id: unknown) => typeof id === 'string' && /^chg_\w{1,40}$/.test(id);
  if (ids.length === 0 || ids.length > max || !ids.every(isId))
    throw new FieldError(name, `must be 1 to ${max} ids of rank changes, such as chg_VbflntX4kQ2mX7Lp`);
  return [...new Set(ids as string[])];
}
