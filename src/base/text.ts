/**
 * What starts a line of its own, drives a terminal, shows in another order than it is, or is not shown at all, so that two names look
 * alike: control characters, line separators, direction marks, and characters without a width. The joiner U+200D stays between
 * two emoji, of which it makes one.
 */
export const controlCharacters =
  /\p{Cc}|[\u00ad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]|\u200d(?:(?<!\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?\u200d)|(?!\p{Extended_Pictographic}))/gu;

/** Text with its controlCharacters written as `\u001b`. Within JSON that means the same as before. */
export function escapeControls(text: string): string {
  return text.replaceAll(controlCharacters, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** At most `max` characters, cut between characters and never inside one. */
export function shorten(text: string, max: number): string {
  if (text.length <= max) return text;
  const characters = [...text];
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : text;
}

/** e.g. `1 member`, `2 members`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
