/**
 * Hides `key` (printable ASCII) in a text, even if some of its characters are escaped as in JSON. The text can't be parsed
 * first: much of what is quoted to callers and in the log is JSON that was cut off.
 */
export function keyMask(key: string): (text: string) => string {
  const characters = Array.from(key, (one) => {
    const hex = one.charCodeAt(0).toString(16);
    return `(?:\\\\?\\x${hex}|\\\\u00${hex})`;
  });
  const written = new RegExp(characters.join(''), 'gi');
  return (text) => text.replaceAll(written, '[key]');
}
