/** The source of a script with these values in its table, where each has a line of its own: `name = value,`. What is `undefined` stays. */
export function withFields(source: string, fields: Record<string, string | number | undefined>): string {
  return Object.entries(fields).reduce((text, [name, value]) => {
    if (value === undefined) return text;
    const line = new RegExp(`^(\\t${name} = ).*,$`, 'm');
    if (!line.test(text)) throw new Error(`the script has no line for ${name}`);
    return text.replace(line, (_, lead: string) => `${lead}${luauOf(value)},`);
  }, source);
}

/** The value as Luau writes it. Of a text, only what has no meaning of its own anywhere stays as it is; the rest becomes numbers. */
function luauOf(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const characters = [...Buffer.from(value)].map((byte) => {
    const character = String.fromCharCode(byte);
    return /[\w .,:/@%+-]/.test(character) ? character : `\\${String(byte).padStart(3, '0')}`;
  });
  return `"${characters.join('')}"`;
}
