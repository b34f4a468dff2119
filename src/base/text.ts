/**
 * Characters that break a line, drive a terminal, reorder text or are invisible, so that two names look alike or a name looks empty:
 * control and format characters, line separators, fillers, blanks, tags, variation selectors beyond U+FE0F, and every combining mark
 * after the fourth. The joiner U+200D stays between two emoji, because it makes them one.
 */
export const controlCharacters =
  /\p{Cc}|[\u2028\u2029\u2800\ufff9-\ufffb]|(?![\u200d\ufe00-\ufe0f])\p{Default_Ignorable_Code_Point}|(?<=\p{M}{4})\p{M}|\u200d(?:(?<!\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?\u200d)|(?!\p{Extended_Pictographic}))/gu;

/** Text with its controlCharacters written as `\u001b`, which means the same within JSON. */
export function escapeControls(text: string): string {
  return text.replaceAll(controlCharacters, (control) =>
    control
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
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
