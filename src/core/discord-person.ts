import { RankdError } from '../base/errors.ts';
import { crypto } from '../base/node-modules.ts';
import { type Actor, discordLinked, type Verdict } from './events.ts';

/** A Discord user who used a command, or whom the operator linked to a Roblox user. */
export interface DiscordPerson {
  /** A string, because Discord ids exceed JavaScript's safe integers. */
  discordId: string;
  /** Hex. */
  salt: string;
  /** The linked Roblox user, if any. */
  userId?: number;
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
 * Returns the person's name for the history and the audit log: a commitment to the Discord id. To forget a person,
 * rankd deletes the salt: the name can then no longer be linked to anyone, and the audit chain stays intact.
 */
export function actorOf({ discordId, salt }: Pick<DiscordPerson, 'discordId' | 'salt'>): string {
  return `${discordPrefix}${crypto().hash('sha256', `${salt}:${discordId}`).slice(0, 32)}`;
}

export const discordPrefix = 'discord:';

export type JudgePerson = (known: DiscordPerson | undefined) => Verdict<DiscordPerson>;

/**
 * Judges a link to a Roblox user, which replaces any previous link. `fresh`: the record to create if the person is
 * unknown.
 */
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

/**
 * Returns the person whom a record's `by` names, or `undefined` if it names no Discord user, or one who was forgotten.
 */
export function personBehind(by: string, people: readonly DiscordPerson[]): DiscordPerson | undefined {
  return by.startsWith(discordPrefix) ? people.find((one) => actorOf(one) === by) : undefined;
}
