import type { Deadline } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { isoTime, parseDuration } from '../../base/time.ts';
import { refusalOf } from '../../core/access.ts';
import { newId, withoutKeys } from '../../core/api-key.ts';
import { holdTitle, memberTitle, roleTitle } from '../../core/describe.ts';
import { type DiscordCommandName, maxDiscordReason } from '../../core/discord-commands.ts';
import { actorOf, type DiscordPerson } from '../../core/discord-person.ts';
import type { NamedUser } from '../../core/model.ts';
import { type Direction, effectiveStates, type Key, type RankRequest, type Scope } from '../../core/model.ts';
import { tookEffect } from '../../core/undo.ts';
import { userIn, userWords } from '../../core/user-ref.ts';
import type { CallContext } from '../../ports/index.ts';
import { type ChangeAnswer, changeRank, claimIdempotencyKey } from '../../usecases/change/change-rank.ts';
import { errorOf } from '../../usecases/change/change-record.ts';
import type { ChangeCaller } from '../../usecases/change/ranking.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { findOrCreatePerson } from '../../usecases/discord/discord-people.ts';
import { findMemberRoles } from '../../usecases/group/group.ts';
import { changeTitle, whoRequested } from '../../usecases/history/change-document.ts';
import { liftHold, requireLength } from '../../usecases/holds/holds.ts';
import { openHold } from '../../usecases/holds/open-hold.ts';
import { findUser, namesOf, namesOfLinked, userNameIfKnown } from '../../usecases/people/users.ts';
import { undoMember } from '../../usecases/undo/undo-member.ts';
import {
  asRoleName,
  type ChangeRequest,
  idempotencyOf,
  simulatedMark,
  warnOfPause,
  withoutOmitted,
} from '../changes.ts';
import { limitsOf, type Throttle } from '../throttle.ts';
import { type Interaction, type InteractionMember, shownName } from './interaction.ts';

interface CommandRequest {
  app: DaemonContext;
  throttle: Throttle;
  interaction: Interaction;
  member: InteractionMember;
  /** The key that the configuration assigns to the person's Discord role. */
  keyName: string;
  deadline: Deadline;
  facts: Record<string, unknown>;
}

interface Identified extends CommandRequest {
  person: DiscordPerson;
  /** Returns an option's value, or an empty string if the option was omitted. */
  text: (name: string) => string;
}

/** A command whose key has been accepted. */
interface Asking extends Identified {
  key: Key;
  caller: ChangeCaller;
  call: CallContext;
}

/** Without a scope, the command needs no key. */
type CommandSpec =
  | { scope?: undefined; run(asking: Identified): Promise<string> }
  | { scope: Scope; run(asking: Asking): Promise<string> };

const commands: Readonly<Record<DiscordCommandName, CommandSpec>> = {
  promote: { scope: 'rank', run: (asking) => step(asking, 'promote') },
  demote: { scope: 'rank', run: (asking) => step(asking, 'demote') },
  setrank: { scope: 'rank', run: setRank },
  role: { scope: 'roles', run: changeRole },
  suspend: { scope: 'suspend', run: suspend },
  unsuspend: { scope: 'suspend', run: unsuspend },
  whois: { scope: 'verify', run: whoIs },
  undo: { scope: 'rank', run: undo },
  link: { run: showLink },
};

export function commandOf(name: string): CommandSpec | undefined {
  return Object.hasOwn(commands, name) ? commands[name as DiscordCommandName] : undefined;
}

/** Returns the reply to a command from Discord, or throws the refusal. */
export async function runCommand(request: CommandRequest): Promise<string> {
  const { app, throttle, interaction, member, keyName, deadline } = request;
  const command = commandOf(interaction.data.name) ?? commands.link;
  const person = await findOrCreatePerson(app, member.user.id);
  const given = new Map(interaction.data.options.map(({ name, value = '' }) => [name, String(value)]));
  const text = (name: string) => withoutKeys((given.get(name) ?? '').toWellFormed().trim());
  if (command.scope === undefined) return command.run({ ...request, person, text });
  const { scope, run } = command;
  const key = await usableKey(app, keyName, scope);
  const limits = limitsOf[scope](app.limits, { key, placeId: undefined }).filter(({ name }) => name !== 'place');
  const overLimit = throttle.isShared ? await throttle.takeOfAll(limits, undefined) : throttle.take(limits, undefined);
  if (overLimit !== undefined) throw overLimit;
  const caller = { by: actorOf(person), keyId: key.id, dryRun: key.mode === 'test', rules: key };
  const call = { signal: deadline.signal, deadlineAt: deadline.at, lane: key.id };
  const mark = simulatedMark(app.group.title);
  try {
    return (await run({ ...request, person, text, key, caller, call })) + mark;
  } catch (error) {
    if (!(error instanceof RankdError)) throw error;
    const { code, message, details, cause } = error;
    const isUnlinked = code === 'ranker_not_allowed' && person.userId === undefined;
    const fix = isUnlinked ? ` The operator can link it: rankd discord link ${person.discordId} USER` : '';
    throw new RankdError(code, message + mark + fix, { details, cause });
  }
}

/**
 * Returns the key with this name. Throws a refusal if the key cannot be used, for example because it is not for
 * Discord.
 */
export async function usableKey({ store, group, clock }: DaemonContext, name: string, scope: Scope): Promise<Key> {
  const [key, workspace] = await Promise.all([store.findKey(name), store.getWorkspace()]);
  if (key?.name !== name || !key.isForDiscord) throw notUsable(name);
  const refusal = refusalOf({ key, workspace }, { scope, group: group.title, placeId: undefined, now: clock.now() });
  if (refusal?.code === 'invalid_key') throw notUsable(name, refusal);
  if (refusal !== undefined) throw refusal;
  return key;
}

function notUsable(name: string, { details = { reason: 'unknown' } }: Partial<RankdError> = {}): RankdError {
  const message = `The key "${name}" of your role cannot be used now. The operator can find the reason: rankd doctor`;
  return new RankdError('invalid_key', message, { details });
}

async function step(asking: Asking, direction: Direction): Promise<string> {
  const rankee = await rankeeOf(asking);
  return change(asking, { request: requestOf(asking, rankee), step: direction });
}

async function setRank(asking: Asking): Promise<string> {
  const rankee = await rankeeOf(asking);
  const rank = asRoleName(asking.text('rank'));
  const request = { ...requestOf(asking, rankee), newRankId: typeof rank === 'number' ? rank : 0 };
  return change(asking, { request, ...(typeof rank === 'string' && { roleName: rank }) });
}

async function changeRole(asking: Asking): Promise<string> {
  const action = asking.text('action');
  if (action !== 'add' && action !== 'remove')
    throw new RankdError('invalid_request', 'The action must be add or remove.');
  const rankee = await rankeeOf(asking);
  const role = asRoleName(asking.text('role'));
  const request = { ...requestOf(asking, rankee), newRankId: typeof role === 'number' ? role : 0 };
  const kind = action === 'add' ? 'role_added' : 'role_removed';
  return change(asking, { request, kind, ...(typeof role === 'string' && { roleName: role }) });
}

async function suspend(asking: Asking): Promise<string> {
  const { app, text } = asking;
  const ms = parseDuration(text('duration'));
  if (ms === undefined) throw new RankdError('invalid_request', 'Give a duration such as 3d, 12h or 30m.');
  requireLength(app, ms, 'invalid_request');
  const request = requestOf(asking, await rankeeOf(asking));
  return change(asking, { request, hold: { kind: 'suspension', endsAt: app.clock.now() + ms } });
}

async function unsuspend(asking: Asking): Promise<string> {
  const { app, caller, call, interaction } = asking;
  const { rankeeId, rankerId, rankerName, command = '', reason } = requestOf(asking, await rankeeOf(asking));
  const lift = { rankeeId, caller, force: false, reason, asked: { rankerId, rankerName, command } };
  const { finished, replayed } = await liftHold(app, { ...lift, ...idempotencyFor(interaction) }, call);
  return messageOf(asking, { ...finished, replayed });
}

async function change(asking: Asking, asked: ChangeRequest): Promise<string> {
  const { app, caller, interaction, deadline } = asking;
  return messageOf(asking, await changeRank(app, { ...asked, caller, ...idempotencyFor(interaction) }, deadline));
}

/** Returns an applied change's message. Throws the error of a change that was not applied. */
function messageOf({ app, facts }: Asking, answer: ChangeAnswer): string {
  const { change, error } = answer;
  warnOfPause(app.log, answer);
  Object.assign(facts, { changeId: change.id, rankeeId: change.rankeeId, change: changeTitle(change) });
  const refusal = errorOf(change, error);
  if (refusal !== undefined) throw refusal;
  return change.message;
}

/** Returns an idempotency key for the interaction, so that a duplicate gets the first one's outcome. */
function idempotencyFor({ id, data }: Interaction) {
  return idempotencyOf(`discord:${id}`, [data.name, data.options]);
}

async function rankeeOf({ app, call, text }: Asking): Promise<NamedUser> {
  const given = text('user');
  const [, discordId] = /^<@!?(\d+)>$/.exec(given) ?? [];
  const asked = discordId === undefined ? userIn(given) : await userBehind(app, discordId);
  if (asked === undefined) {
    throw new RankdError('invalid_request', `The user must be ${userWords}, or a mention of a linked person.`);
  }
  if (typeof asked === 'string') return findUser(app, asked, call);
  return { id: asked, name: (await namesOf(app, [asked])).get(asked) ?? '' };
}

async function userBehind({ store }: DaemonContext, discordId: string): Promise<number> {
  const person = await store.findDiscordPerson(discordId);
  if (person?.userId !== undefined) return person.userId;
  const message = 'The person you mentioned is not linked to a Roblox user; use the Roblox name instead.';
  throw new RankdError('user_not_found', message);
}

function requestOf(asking: Asking, rankee: NamedUser): RankRequest {
  const { interaction, text } = asking;
  const reason = text('reason');
  const length = [...reason].length;
  if (length > maxDiscordReason)
    throw new RankdError(
      'invalid_request',
      `The reason has ${length} characters; at most ${maxDiscordReason} are allowed.`,
    );
  return withoutOmitted({
    ...{ rankeeId: rankee.id, rankeeName: rankee.name, newRankId: 0 },
    ...rankerOf(asking),
    ...{ command: `/${interaction.data.name}`, reason: reason === '' ? undefined : reason },
  });
}

function rankerOf({ person, member }: Asking) {
  return { rankerId: person.userId ?? 0, rankerName: withoutKeys(shownName(member).toWellFormed()) };
}

async function whoIs(asking: Asking): Promise<string> {
  const { app, call } = asking;
  const { id, name } = await rankeeOf(asking);
  const [found, hold, [last]] = await Promise.all([
    findMemberRoles(app, id, call),
    openHold(app, id),
    app.store.listChanges({ group: app.group.title, rankeeId: id, limit: 1 }),
  ]);
  const title = memberTitle({ rankeeId: id, rankeeName: name || ((await userNameIfKnown(app, id, call)) ?? '') });
  if (found === undefined) return `${title} is not in the group.`;
  const held = found.held.filter(({ kind }) => kind !== 'private' && kind !== 'base').toReversed();
  const lines = [
    `${title} ${found.highest === undefined ? 'has no rank' : `is ${roleTitle(found.highest)}`}.`,
    ...(held.length > 1 ? [`Roles: ${held.map(roleTitle).join(', ')}`] : []),
    ...(hold === undefined ? [] : [holdTitle(hold)]),
    ...(last === undefined
      ? []
      : [
          `Last change: ${isoTime(last.requestedAt).slice(0, 16).replace('T', ' ')} UTC, ${changeTitle(last)}, ${last.state}, by ${whoRequested(last)}`,
        ]),
  ];
  return lines.join('\n');
}

const undoWithinMs = 10 * 60_000;

/**
 * Undoes the newest change that the person made through Discord and that affected or may have affected the member.
 * Skips undos, and changes that are older than `undoWithinMs`.
 */
async function undo(asking: Asking): Promise<string> {
  const { app, caller, interaction, facts } = asking;
  const idempotency = idempotencyFor(interaction).idempotency;
  await using claim = await claimIdempotencyKey(app, { caller, ...(idempotency && { idempotency }) });
  if (claim.earlier !== undefined) return messageOf(asking, { change: claim.earlier, replayed: true });
  const own = await app.store.listChanges({
    ...{ group: app.group.title, by: caller.by, states: [...effectiveStates], limit: 50 },
    since: app.clock.now() - undoWithinMs,
  });
  const last = own.find((one) => one.undoId === undefined && (one.state !== 'applied' || tookEffect(one)));
  if (last === undefined)
    throw new RankdError('not_found', 'You have not changed a rank through Discord in the last 10 minutes.');
  const title = memberTitle(last);
  const result = await undoMember(
    app,
    {
      ...{ selection: { ids: [last.id] }, undoId: newId('undo'), by: caller.by, dryRun: caller.dryRun },
      requester: { caller, ...rankerOf(asking), ...(idempotency && { idempotency }) },
    },
    last,
  );
  Object.assign(facts, { undone: last.id, rankeeId: last.rankeeId });
  switch (result.state) {
    case 'put_back':
      return result.change.message;
    case 'would_put_back':
      return `Test key, nothing changed: ${result.change.message}`;
    case 'already':
      return `${title} already holds the roles from before your last change.`;
    case 'changed_since':
      throw new RankdError('conflict', `${title} was changed again since your last change, so nothing was undone.`);
    case 'left_group':
      throw new RankdError('member_not_found', `${title} is no longer in the group.`);
    case 'refused':
    case 'unknown':
      throw result.error;
  }
}

async function showLink({ app, person: { userId, discordId } }: Identified): Promise<string> {
  if (userId === undefined)
    return `You are not linked to a Roblox user. The operator can link you: rankd discord link ${discordId} USER`;
  const name = (await namesOfLinked(app, [userId])).get(userId);
  return `You are linked to the Roblox user ${name === undefined ? userId : `${name} (${userId})`}.`;
}
