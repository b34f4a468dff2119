import { controlCharacters } from '../../base/text.ts';

/**
 * Text of games and players for a message in Discord: it can't mention anyone, make a link, look like another text, or
 * be longer than `max` UTF-16 units, which is how Discord counts.
 */
export function quoted(text: string, max: number): string {
  const plain = text
    .toWellFormed()
    .replaceAll(controlCharacters, '')
    .replaceAll(/(\p{M}{2})\p{M}+/gu, '$1');
  let escaped = '';
  for (const [next] of plain.replaceAll(special, '\\$&').matchAll(/\\?./gsu)) {
    if (escaped.length + next.length >= max) return `${escaped}…`;
    escaped += next;
  }
  return escaped;
}

/** The first characters of Discord's Markdown, mentions and time stamps, and the dot of a domain, which Discord may show as an invitation. */
const special = /[\\*_~`|>#[\]()<@:-]|\.(?=\p{L})/gu;

/** A link, or only the text if there is no user. */
export function profileLink(text: string, userId: number): string {
  return userId > 0 ? `[${text}](${profileOf(userId)})` : text;
}

export function profileOf(userId: number): string {
  return `https://www.roblox.com/users/${userId}/profile`;
}
