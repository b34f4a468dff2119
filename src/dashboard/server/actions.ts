import { deadlineIn } from '../../base/clock.ts';
import { type ErrorCode, isRankdError } from '../../base/errors.ts';
import { isKeyName } from '../../core/api-key.ts';
import { isDiscordId } from '../../core/discord-person.ts';
import { isSimulatedGroup } from '../../core/group-title.ts';
import type { KeyRulesChange } from '../../core/key-changes.ts';
import { directions, type Hold, type Key, type RoleChangeKind, scopes } from '../../core/model.ts';
import { resolveAlongside } from '../../core/target.ts';
import { userIn, userWords } from '../../core/user-ref.ts';
import { defaultEvents } from '../../core/webhooks/event-types.ts';
import { isWebhookName } from '../../core/webhooks/webhook.ts';
import { callWithin } from '../../ports/platform.ts';
import type { ListCommand } from '../../usecases/change/change-list.ts';
import { changeRank } from '../../usecases/change/change-rank.ts';
import { errorOf } from '../../usecases/change/change-record.ts';
import { backgroundDeadlineMs, type ChangeCommand, type RequestedHold } from '../../usecases/change/ranking.ts';
import { testRank } from '../../usecases/change/test-rank.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { linkPerson, unlinkPerson } from '../../usecases/discord/discord-people.ts';
import { linksDocument, listNamedLinks } from '../../usecases/discord/links-document.ts';
import { roleTitleDocument } from '../../usecases/group/group-document.ts';
import { changeDocument, dryRunDocument } from '../../usecases/history/change-document.ts';
import { holdDocument } from '../../usecases/holds/hold-document.ts';
import { dryRunLift, liftHold, requireLength } from '../../usecases/holds/holds.ts';
import { keyDocument } from '../../usecases/keys/key-document.ts';
import {
  createDiscordKey,
  createKey,
  pauseKey,
  resumeKey,
  revokeKey,
  rotateKey,
  setKeyRules,
} from '../../usecases/keys/keys.ts';
import { findListed, placesIn, usersIn } from '../../usecases/pasted-list.ts';
import { findUser, namesOf } from '../../usecases/people/users.ts';
import { maxMembers, type PageRuns, pageRunDocument } from '../../usecases/views/page-runs.ts';
import {
  addressFrom,
  addWebhook,
  disableWebhook,
  enableWebhook,
  eventsFrom,
  refuseForbidden,
  removeWebhook,
  setWebhook,
} from '../../usecases/webhooks/edit-webhooks.ts';
import { testWebhook } from '../../usecases/webhooks/send.ts';
import { viewWebhook } from '../../usecases/webhooks/view-webhooks.ts';
import { webhookDocument, webhookTestDocument } from '../../usecases/webhooks/webhook-document.ts';
import { addPlaces, changedEntryDocument, removePlaces, setPlacesActive } from '../../usecases/whitelist/whitelist.ts';
import type { Document } from './answers.ts';
import {
  changeIds,
  type Field,
  FieldError,
  flag,
  id,
  inField,
  length,
  oneOf,
  optional,
  orNone,
  reason,
  someOf,
  text,
} from './requests.ts';

interface Acting {
  app: DaemonContext;
  runs: PageRuns;
  /** The operator, as recorded in the audit log: `web:<user>@<host>`. */
  by: string;
}

type Schema = Readonly<Record<string, Field<unknown>>>;
type Values<Of extends Schema> = { [Name in keyof Of]: ReturnType<Of[Name]> };
type Action = (fields: Record<string, unknown>, acting: Acting) => Promise<Document>;

const fieldOf: Partial<Record<ErrorCode, string>> = {
  user_not_found: 'user',
  user_renamed: 'user',
  unknown_rank: 'rank',
  ambiguous_rank: 'rank',
  already_exists: 'name',
  reason_required: 'reason',
};

/** Creates a POST handler that parses the fields, calls `run`, and adds the relevant field to an error. */
function action<Of extends Schema>(schema: Of, run: (values: Values<Of>, acting: Acting) => Promise<Document>): Action {
  return async (fields, acting) => {
    const values = Object.entries(schema).map(([name, field]) => [name, field(fields[name], name)]);
    try {
      return await run(Object.fromEntries(values), acting);
    } catch (error) {
      const field = isRankdError(error) ? fieldOf[error.code] : undefined;
      throw isRankdError(error) && field !== undefined && field in schema ? new FieldError(field, error) : error;
    }
  };
}

const role = id('the id of a role');
const key = { key: text(100) };
const webhook = { webhook: text(100) };
const keyName = named(
  isKeyName,
  '1 to 64 letters, digits, dots, dashes or underscores, and begin with a letter or digit',
);
const webhookName = named(isWebhookName, '1 to 40 lower-case letters, digits and dashes');
const discordId = named(isDiscordId, 'the id of a Discord user: digits alone, such as 1100000000000000001');
/** The changes to an extra role, keyed by the request's `does`. */
const roleKinds: Partial<Record<string, RoleChangeKind>> = { give: 'role_added', take: 'role_removed' };
/** The holds that a change with a duration begins, keyed by the request's `does`. */
const holdKinds: Partial<Record<string, Hold['kind']>> = { suspend: 'suspension', set: 'temporary', give: 'temporary' };
const changes = ['set', 'give', 'take', ...directions] as const;
const members = { users: text(60_000), does: oneOf(changes), rank: optional(role), reason };
const oneMember = {
  user: id('a user id'),
  does: oneOf(['suspend', ...changes]),
  rank: optional(role),
  /** The duration of a suspension, temporary rank or temporary role; `ever` means no end. */
  for: optional<number | 'ever'>((value, name) => (value === 'ever' ? value : length(value, name))),
  /** The member's highest role in the preview. rankd refuses the change if that is no longer the highest role. */
  ifRank: optional(role),
  reason,
};
const rules = {
  minRank: orNone(optional(role)),
  maxRank: orNone(optional(role)),
  direction: orNone(optional(oneOf(directions))),
  isAnyPlace: optional(flag),
};
const places = { ...key, places: text(10_000) };

/** The handlers of the page's POST requests, except those about sessions, keyed by the path under /api. */
export const actions: Readonly<Record<string, Action>> = {
  'rank/test': action(oneMember, async (values, { app, by }) => {
    const command = await changeOf(app, values, by);
    using call = callWithin(app.clock, app.deadlineMs, 'operator');
    const tested = await testRank(app, { ...command, key: undefined, placeId: undefined }, call);
    const { scheme, plan } = tested.approved ?? {};
    const title = (roleId: number) => scheme?.roles.filter(({ id }) => id === roleId).map(roleTitleDocument)[0];
    const move = plan && {
      from: plan.highestBefore === undefined ? null : roleTitleDocument(plan.highestBefore),
      to: roleTitleDocument(plan.target),
      steps: plan.steps.map(({ kind, roleId }) => ({ kind, role: title(roleId) ?? null })),
    };
    return { test: dryRunDocument(tested), move: move ?? null };
  }),
  'rank/change': action(oneMember, async (values, { app, by }) => {
    const command = await changeOf(app, values, by);
    using deadline = deadlineIn(app.clock, backgroundDeadlineMs(app));
    const { change, error } = await changeRank(app, command, deadline);
    const refusal = errorOf(change, error);
    if (refusal !== undefined) throw refusal;
    return { change: changeDocument({ change }) };
  }),
  'list/test': action(members, async (values, { app, by }) => {
    const { members } = await listOf(app, values, by);
    return { members };
  }),
  'list/run': action(members, async (values, { app, runs, by }) => {
    return { run: pageRunDocument(await runs.list(app, await listOf(app, values, by))) };
  }),
  undo: action({ ids: changeIds(maxMembers) }, async ({ ids }, { app, runs, by }) => {
    return { run: pageRunDocument(await runs.undo(app, { ids, by })) };
  }),
  'suspensions/test': action({ user: id('a user id'), force: flag }, async ({ user: rankeeId, force }, { app, by }) => {
    using call = callWithin(app.clock, app.deadlineMs, 'operator');
    return { message: await dryRunLift(app, { rankeeId, force, caller: { by, dryRun: true } }, call) };
  }),
  'suspensions/lift': action({ user: id('a user id'), force: flag, reason }, async (values, { app, by }) => {
    const { user: rankeeId, ...rest } = values;
    const { hold, finished } = await liftHold(app, { ...rest, rankeeId, caller: { by, dryRun: false } });
    const refusal = errorOf(finished.change, finished.error);
    if (refusal !== undefined) throw refusal;
    return { change: changeDocument(finished), suspension: holdDocument(hold) };
  }),
  'keys/create': action(
    {
      ...{ name: keyName, test: flag, forDiscord: flag, scopes: someOf(oneOf(scopes)), expires: optional(length) },
      ...{ places: optional(text(10_000)), note: optional(text(200)), ...rules },
    },
    async ({ name, test, forDiscord, scopes, expires, places, note, ...asked }, { app, by }) => {
      if (scopes.length === 0) throw new FieldError('scopes', 'must have at least one value');
      const placeIds = places === undefined ? [] : await inField('places', () => placesIn(places, 'the list'));
      const request = {
        ...{ name, mode: test ? ('test' as const) : ('live' as const), scopes, rules: await rulesOf(app, asked), by },
        ...(isSimulatedGroup(app.group.title) && { isSimulated: true }),
        ...(expires !== undefined && { expiresAt: app.clock.now() + expires }),
      };
      if (forDiscord) return { key: keyDocument(await createDiscordKey(app, request), app.clock.now()), secret: null };
      const { key, secret } = await createKey(app, request);
      if (placeIds.length > 0) await addPlaces(app, { key: key.id, placeIds, note, by });
      return { key: keyDocument(key, app.clock.now()), secret };
    },
  ),
  'keys/set': action({ ...key, ...rules }, async ({ key, ...asked }, { app, by }) => {
    const changed = await setKeyRules(app, { key, rules: await rulesOf(app, asked), by });
    return { key: keyDocument(changed, app.clock.now()) };
  }),
  'keys/rotate': action({ ...key, overlap: length }, async ({ key, overlap }, { app, by }) => {
    const { secret, ...rotated } = await rotateKey(app, { key, overlapMs: overlap, by });
    return { key: keyDocument(rotated.key, app.clock.now()), secret };
  }),
  'keys/pause': onKey(pauseKey),
  'keys/resume': onKey(resumeKey),
  'keys/revoke': onKey((app, asked) => revokeKey(app, asked, async () => undefined)),
  'places/add': action({ ...places, note: optional(text(200)) }, async ({ key, places, note }, { app, by }) => {
    const placeIds = await inField('places', () => placesIn(places, 'the list'));
    const { key: owner, entries } = await addPlaces(app, { key, placeIds, note, by });
    return { entries: entries.map((entry) => changedEntryDocument(owner, entry)) };
  }),
  'places/enable': onPlaces((app, asked) => setPlacesActive(app, { ...asked, active: true }), 'enabled'),
  'places/disable': onPlaces((app, asked) => setPlacesActive(app, { ...asked, active: false }), 'disabled'),
  'places/remove': onPlaces(removePlaces, 'removed'),
  'people/link': action({ discord: discordId, user: text(200) }, async ({ discord, user }, { app, by }) => {
    const asked = userIn(user);
    if (asked === undefined) throw new FieldError('user', `must be ${userWords}`);
    using call = callWithin(app.clock, app.deadlineMs, 'operator');
    const userId = typeof asked === 'number' ? asked : (await findUser(app, asked, call)).id;
    await linkPerson(app, { discordId: discord, userId, by });
    return { people: linksDocument(await listNamedLinks(app)) };
  }),
  'people/unlink': action({ discord: discordId }, async ({ discord }, { app, by }) => {
    await unlinkPerson(app, { discordId: discord, by });
    return { people: linksDocument(await listNamedLinks(app)) };
  }),
  'webhooks/add': action(
    { name: webhookName, url: text(2_000), events: someOf(text(100)) },
    async ({ name, url, events }, { app, by }) => {
      const target = await inField('url', () => addressFrom(url));
      const chosen = await inField('events', () => eventsFrom(events));
      await inField('url', () => refuseForbidden(app, target, () => undefined));
      const own = chosen.length > 0 ? chosen : [...defaultEvents[target.kind]];
      const { secret } = await addWebhook(app, { name, target, events: own, by });
      return { webhook: webhookDocument(await viewWebhook(app, name)), secret: secret ?? null };
    },
  ),
  'webhooks/set': action({ ...webhook, events: someOf(text(100)) }, async (values, { app, by }) => {
    const events = await inField('events', () => eventsFrom(values.events));
    if (events.length === 0) throw new FieldError('events', 'must have at least one value');
    await setWebhook(app, { name: values.webhook, events, by });
    return { webhook: webhookDocument(await viewWebhook(app, values.webhook)) };
  }),
  'webhooks/test': action(webhook, async (values, { app }) =>
    webhookTestDocument(await testWebhook(app, values.webhook)),
  ),
  'webhooks/enable': action({ ...webhook, fromNow: flag }, async ({ webhook: name, fromNow }, { app, by }) => {
    const { leftOut } = await enableWebhook(app, { name, skipsBacklog: fromNow, by });
    return { webhook: webhookDocument(await viewWebhook(app, name)), leftOut };
  }),
  'webhooks/disable': action(webhook, async ({ webhook: name }, { app, by }) => {
    await disableWebhook(app, { name, by });
    return { webhook: webhookDocument(await viewWebhook(app, name)) };
  }),
  'webhooks/remove': action(webhook, async ({ webhook: name }, { app, by }) => {
    await removeWebhook(app, { name, by });
    return {};
  }),
};

function named(isName: (text: string) => boolean, what: string): Field<string> {
  return (value, name) => {
    if (typeof value === 'string' && isName(value.trim())) return value.trim();
    throw new FieldError(name, `must be ${what}`);
  };
}

function onKey(work: (app: DaemonContext, asked: { key: string; by: string }) => Promise<{ key: Key }>): Action {
  return action(key, async ({ key }, { app, by }) => {
    return { key: keyDocument((await work(app, { key, by })).key, app.clock.now()) };
  });
}

function onPlaces(
  work: (app: DaemonContext, asked: Parameters<typeof removePlaces>[1]) => ReturnType<typeof removePlaces>,
  outcome: string,
): Action {
  return action(places, async ({ key, places }, { app, by }) => {
    const placeIds = await inField('places', () => placesIn(places, 'the list'));
    const { key: owner, entries } = await work(app, { key, placeIds, by });
    return { entries: entries.map((entry) => changedEntryDocument(owner, { ...entry, outcome })) };
  });
}

async function changeOf(
  app: DaemonContext,
  { user, does, rank, for: duration, ifRank, reason }: Values<typeof oneMember>,
  by: string,
): Promise<ChangeCommand> {
  const newRankId = roleOf({ does, rank });
  if (does === 'suspend' && duration === undefined)
    throw new FieldError('for', 'is missing: give a duration such as 3d, or ever');
  const name = (await namesOf(app, [user])).get(user) ?? '';
  const hold = await holdOf(app, does, duration);
  return {
    caller: { by, dryRun: false },
    request: {
      ...{ rankeeId: user, rankeeName: name, rankerId: 0, rankerName: 'operator', command: 'dashboard' },
      ...{ newRankId, ...(reason !== undefined && { reason }) },
    },
    ...kindOf(does),
    ...(hold !== undefined && { hold }),
    ...(ifRank !== undefined && { ifRank }),
  };
}

function kindOf(does: string): Pick<ChangeCommand, 'step' | 'kind'> {
  const step = directions.find((direction) => direction === does);
  const kind = roleKinds[does];
  return { ...(step && { step }), ...(kind && { kind }) };
}

/** Returns the requested rank or role; 0 for a promotion, a demotion or a suspension. */
function roleOf({ does, rank }: Pick<Values<typeof oneMember>, 'does' | 'rank'>): number {
  if (does !== 'set' && !(does in roleKinds)) return 0;
  if (rank === undefined) throw new FieldError('rank', 'is missing');
  return rank;
}

async function holdOf(
  app: DaemonContext,
  does: Values<typeof oneMember>['does'],
  duration: number | 'ever' | undefined,
): Promise<RequestedHold | undefined> {
  if (duration === undefined) return undefined;
  const kind = holdKinds[does];
  if (kind === undefined) throw new FieldError('for', `can only be used with suspend, set and give, not with ${does}`);
  if (duration === 'ever') return { kind };
  await inField('for', () => requireLength(app, duration));
  return { kind, endsAt: app.clock.now() + duration };
}

async function listOf(app: DaemonContext, { users, does, rank, reason }: Values<typeof members>, by: string) {
  const newRankId = roleOf({ does, rank });
  using call = callWithin(app.clock, app.deadlineMs, 'operator');
  // refuses an unknown rank or role once instead of once per line
  if (does in roleKinds)
    await inField('rank', () => app.group.judged((scheme) => resolveAlongside(scheme, newRankId), call));
  else if (does === 'set') await app.group.target(newRankId, call);
  const found = await inField('users', () => findListed(app, usersIn(users, 'the list')));
  if (found.length > maxMembers) throw new FieldError('users', `can name at most ${maxMembers} members`);
  const command: ListCommand = {
    step: undefined,
    ...kindOf(does),
    request: { rankerId: 0, rankerName: 'operator', newRankId, ...(reason !== undefined && { reason }) },
    ...{ command: 'dashboard', by },
  };
  return { command, members: found };
}

/**
 * Returns the rules to set. Each bound includes its role, so that the bound follows the role if the role's rank
 * changes.
 */
async function rulesOf(
  app: DaemonContext,
  { minRank, maxRank, direction, isAnyPlace }: Values<typeof rules>,
): Promise<KeyRulesChange> {
  const min = await inField('minRank', () => boundOf(app, minRank));
  const max = await inField('maxRank', () => boundOf(app, maxRank));
  return {
    ...(min && { minRank: min.rank, minRankRole: min.roleId }),
    ...(max && { maxRank: max.rank, maxRankRole: max.roleId }),
    ...(direction !== undefined && { direction }),
    ...(isAnyPlace !== undefined && { isAnyPlace: isAnyPlace || null }),
  };
}

async function boundOf(app: DaemonContext, roleId: number | null | undefined) {
  if (roleId === undefined) return undefined;
  if (roleId === null) return { rank: null, roleId: null };
  using call = callWithin(app.clock, app.deadlineMs, 'operator');
  const { id, rank } = (await app.group.target(roleId, call)).target;
  return { rank, roleId: id };
}
