/** Terminal styles. A color never adds information to the text. */
export interface Paints {
  heading(text: string): string;
  /** Dims less important text, such as ids and hints. */
  dimmed(text: string): string;
  /** Colors the state at the beginning of a text, e.g. `active` in `active (test)`. */
  state(text: string): string;
}

export const plain: Paints = { heading: (text) => text, dimmed: (text) => text, state: (text) => text };

export const paints: Paints = {
  heading: (text) => styled(text, 1, 22),
  dimmed: (text) => styled(text, 2, 22),
  state: (text) =>
    text.replace(/^(?:not running|not responding|put back|\w+)/, (word) => {
      const color = colorOf(word);
      return color === undefined ? word : styled(word, color, 39);
    }),
};

const [red, green, yellow] = [31, 32, 33];

const words: Array<[color: number, ...words: string[]]> = [
  [green, 'ok', 'applied', 'active', 'running', 'accepted', 'put back', 'yes'],
  [yellow, 'warn', 'paused', 'rotating', 'pending', 'unknown', 'stopping', 'suspended', 'changed'],
  [
    red,
    'FAIL',
    'error',
    'refused',
    'revoked',
    'failed',
    'expired',
    'STOPPED',
    'NOT',
    'NONE',
    'not running',
    'not responding',
  ],
];

function colorOf(word: string): number | undefined {
  return words.find(([, ...all]) => all.includes(word))?.[0];
}

function styled(text: string, on: number, off: number): string {
  return text === '' ? '' : `\u001b[${on}m${text}\u001b[${off}m`;
}
