import { RankdError } from '../../base/errors.ts';
import { parseDuration, parseMoment } from '../../base/time.ts';
import { type ChangeState, changeStates } from '../../core/model.ts';
import { isUserName } from '../../core/user-ref.ts';
import type { ChangeSelection } from '../../ports/index.ts';
import { callWithin } from '../../ports/platform.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { requireKey } from '../../usecases/keys/find-key.ts';
import { findUser } from '../../usecases/people/users.ts';
import { checkedIds, FieldError } from './requests.ts';

/**
 * Returns a query parameter's value, or `undefined` if it is absent or empty. Throws `FieldError` if it is repeated.
 */
export function valueIn(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name).filter((value) => value !== '');
  if (values.length > 1) throw new FieldError(name, 'is given more than once');
  return values[0]?.trim() || undefined;
}

export function requiredIn(query: URLSearchParams, name: string): string {
  const value = valueIn(query, name);
  if (value === undefined) throw new FieldError(name, 'is missing');
  return value;
}

/** Returns all values of a query parameter, which can be repeated or contain commas. */
function valuesIn(query: URLSearchParams, name: string): string[] {
  return query
    .getAll(name)
    .flatMap((value) => value.split(','))
    .map((value) => value.trim())
    .filter((value) => value !== '');
}

export function wholeNumberIn(
  query: URLSearchParams,
  name: string,
  { min, max, preset }: { min: number; max: number; preset: number },
): number {
  const value = valueIn(query, name);
  if (value === undefined) return preset;
  const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new FieldError(name, `must be a whole number from ${min} to ${max}`);
}

export function booleanIn(query: URLSearchParams, name: string): boolean {
  const value = valueIn(query, name);
  if (value === undefined || value === 'false') return false;
  if (value === 'true') return true;
  throw new FieldError(name, 'must be true or false');
}

/** Parses a selection of changes, as in `rankd history list`, and resolves key and ranker names. */
export async function selectionIn(app: DaemonContext, query: URLSearchParams): Promise<ChangeSelection> {
  const [key, ranker] = [valueIn(query, 'key'), valueIn(query, 'ranker')];
  return {
    ...memberIn(query),
    rankerId: ranker === undefined ? undefined : await rankerOf(app, ranker),
    keyId: key === undefined ? undefined : await keyIdOf(app, key),
    placeId: idIn(query, 'place'),
    by: valueIn(query, 'by')?.slice(0, 200),
    undoId: valueIn(query, 'undo'),
    states: statesIn(query),
    since: momentIn(app, query, 'since'),
    until: momentIn(app, query, 'until'),
  };
}

/** Parses the changes to undo. Rejects selections that are too broad, by the same rules as `rankd history undo`. */
export async function undoSelectionIn(app: DaemonContext, query: URLSearchParams): Promise<ChangeSelection> {
  const ids = valuesIn(query, 'change');
  if (ids.length > 0) return { ids: checkedIds('change', ids, maxNamed) };
  const { rankeeName, states: _, ...selection } = await selectionIn(app, query);
  if (rankeeName !== undefined)
    throw new FieldError('user', 'must be a user id, because several names can begin the same way');
  const { undoId, rankeeId, keyId, placeId, rankerId, by, since } = selection;
  if (undoId !== undefined || rankeeId !== undefined) return selection;
  const isNamed = [keyId, placeId, rankerId, by].some((one) => one !== undefined);
  if (!isNamed) throw new FieldError('change', 'is missing: select the changes to undo');
  if (since === undefined) throw new FieldError('since', 'is missing: give a start time');
  return selection;
}

/** The maximum number of ids in a query, so that the URL does not become too long. */
const maxNamed = 200;

/** Parses a user id or the beginning of a user name. */
function memberIn(query: URLSearchParams): Pick<ChangeSelection, 'rankeeId' | 'rankeeName'> {
  const user = valueIn(query, 'user');
  if (user === undefined) return {};
  if (/^\d+$/.test(user)) return { rankeeId: idIn(query, 'user') };
  const rankeeName = user.replace(/^@/, '');
  if (/^\w{1,20}$/.test(rankeeName)) return { rankeeName };
  throw new FieldError('user', 'must be a user id, or the beginning of a user name (letters, digits, underscores)');
}

async function rankerOf(app: DaemonContext, ranker: string): Promise<number> {
  if (ranker === '0') return 0;
  const id = asId(ranker);
  if (id !== undefined) return id;
  const name = ranker.replace(/^@/, '');
  if (!isUserName(name)) throw new FieldError('ranker', 'must be a user id, or a whole user name');
  using call = callWithin(app.clock, app.deadlineMs, 'operator');
  return (await namingField('ranker', () => findUser(app, name, call))).id;
}

async function keyIdOf(app: DaemonContext, key: string): Promise<string> {
  return (await namingField('key', () => requireKey(app, key))).id;
}

/** Adds the field's name to an error about a missing record. */
async function namingField<T>(field: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RankdError && (error.code === 'not_found' || error.code === 'user_not_found'))
      throw new FieldError(field, `has no match: ${error.message.replace(/\.$/, '')}`);
    throw error;
  }
}

function idIn(query: URLSearchParams, name: string): number | undefined {
  const value = valueIn(query, name);
  if (value === undefined) return undefined;
  const id = asId(value);
  if (id !== undefined) return id;
  throw new FieldError(name, 'must be an id: a whole number above 0');
}

function asId(text: string): number | undefined {
  const id = /^\d{1,16}$/.test(text) ? Number(text) : 0;
  return id > 0 && Number.isSafeInteger(id) ? id : undefined;
}

function statesIn(query: URLSearchParams): ChangeState[] | undefined {
  const names = valuesIn(query, 'state');
  if (names.length === 0) return undefined;
  return names.map((name) => {
    const state = changeStates.find((one) => one === name);
    if (state === undefined)
      throw new FieldError('state', `can't be '${name.slice(0, 40)}': use one of ${changeStates.join(', ')}`);
    return state;
  });
}

function momentIn({ clock }: Pick<DaemonContext, 'clock'>, query: URLSearchParams, name: string): number | undefined {
  const text = valueIn(query, name);
  if (text === undefined) return undefined;
  const ago = parseDuration(text);
  const at = ago === undefined ? parseMoment(text) : clock.now() - ago;
  if (at !== undefined && Number.isFinite(new Date(at).getTime())) return at;
  const shown = text.slice(0, 40);
  const what = 'give a date such as 2026-05-01, a time such as 2026-05-01T18:00Z, or how long ago, such as 1h';
  throw new FieldError(name, `can't be '${shown}': ${what}`);
}
