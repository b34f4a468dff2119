/** Control characters, line separators and direction marks: what starts a line of its own, drives a terminal, or shows in another order than it is. */
export const controlCharacters = /\p{Cc}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

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
