import { RankdError } from '../base/errors.ts';
import { crypto } from '../base/node-modules.ts';
import { type Actor, discordLinked, type Verdict } from './events.ts';

/** Someone who used a command in Discord, or whom the operator linked to a Roblox user. */
export interface DiscordPerson {
  /** A number that is too large for JavaScript. */
  discordId: string;
  /** Hex. */
  salt: string;
  /** The Roblox user; absent if the person is not linked. */
  userId?: number;
  /** The operator who linked the person. */
  linkedBy?: string;
  linkedAt?: number;
}

export function isDiscordId(text: string): boolean {
  return /^[1-9]\d{4,19}$/.test(text);
}

export function newDiscordPerson(discordId: string): DiscordPerson {
  return { discordId, salt: crypto().randomBytes(16).toString('hex') };
}

/**
 * The person in history and audit. Both hold a commitment in place of the Discord id, so that the person can be forgotten without breaking the
 * audit's chain: without the salt, it can't be linked to a person.
 */
export function actorOf({ discordId, salt }: Pick<DiscordPerson, 'discordId' | 'salt'>): string {
  return `${discordPrefix}${crypto().hash('sha256', `${salt}:${discordId}`).slice(0, 32)}`;
}

export const discordPrefix = 'discord:';

/** Judges a change of a person. `known` is the person as stored. */
export type JudgePerson = (known: DiscordPerson | undefined) => Verdict<DiscordPerson>;

/** Links a person to a Roblox user, in place of an earlier one. */
export function judgeLink(fresh: DiscordPerson, userId: number, { by, at }: Actor): JudgePerson {
  return (known = fresh) => {
    const change = { ...known, userId, linkedBy: by, linkedAt: at };
    return { change, events: [discordLinked('link', actorOf(known), userId, { by, at })] };
  };
}

export function judgeUnlink(discordId: string, actor: Actor): JudgePerson {
  return (known) => {
    if (known?.userId === undefined) {
      const refusal = new RankdError('not_found', `Discord user ${discordId} is not linked.`, {
        hint: 'rankd discord links',
      });
      return { refusal };
    }
    const { userId, linkedBy: _by, linkedAt: _at, ...change } = known;
    return { change, events: [discordLinked('unlink', actorOf(known), userId, actor)] };
  };
}

/** The person whom `by` names in history and audit; `undefined` if that is not a person in Discord, or one who was forgotten. */
export function personBehind(by: string, people: readonly DiscordPerson[]): DiscordPerson | undefined {
  return by.startsWith(discordPrefix) ? people.find((one) => actorOf(one) === by) : undefined;
}
