/** A line on the terminal, split into pieces with one style each. */
type Line = Array<{ text: string; style: string }>;

interface Shown {
  line: Line;
  /** Milliseconds after the start. */
  at: number;
  /** The time at which the line is fully typed, in the same unit; `undefined` for output. */
  typedUntil?: number;
}

const [cellWidth, lineHeight, padding, barHeight] = [8.4, 20, 16, 28];
const [perCharacterMs, beforeOutputMs, perLineMs, restMs, endMs] = [32, 350, 40, 1200, 4000];

/** Records a terminal as an animated SVG without scripts. */
export class TerminalPicture {
  readonly #columns: number;
  readonly #rows: number;
  readonly #shown: Shown[] = [];
  #now = 600;

  constructor({ columns, rows }: { columns: number; rows: number }) {
    this.#columns = columns;
    this.#rows = rows;
  }

  type(command: string): void {
    const at = this.#now;
    this.#now += command.length * perCharacterMs;
    const style = command.startsWith('#') ? 'dim' : 'bold';
    this.#shown.push({ line: [{ text: command, style }], at, typedUntil: this.#now });
    this.#now += beforeOutputMs;
  }

  /** `output` can contain escape sequences. */
  print(output: string): void {
    for (const line of linesOf(output, this.#columns)) {
      this.#shown.push({ line, at: this.#now });
      this.#now += perLineMs;
    }
    this.#shown.push({ line: [], at: this.#now });
    this.#now += restMs;
  }

  svg(title: string): string {
    const duration = this.#now + endMs;
    const [width, height] = [
      this.#columns * cellWidth + 2 * padding,
      this.#rows * lineHeight + 2 * padding + barHeight,
    ];
    const percent = (ms: number) => `${((ms / duration) * 100).toFixed(3)}%`;
    const rules: string[] = [];
    const lines = this.#shown.map(({ line, at, typedUntil }, index) => {
      rules.push(
        `@keyframes l${index}{0%,${percent(at - 1)}{visibility:hidden}${percent(at)},100%{visibility:visible}}`,
      );
      const y = index * lineHeight;
      const prompt = typedUntil === undefined ? '' : spanOf({ text: '$ ', style: 'green' }, 0);
      const indent = typedUntil === undefined ? 0 : 2;
      const text = `<text y="${y + 14}">${prompt}${spansOf(line, indent)}</text>`;
      const animation = (name: string) => `style="animation-name:${name}${index}"`;
      if (typedUntil === undefined) return `<g class="l" ${animation('l')}>${text}</g>`;
      const { length = 0 } = line[0]?.text ?? '';
      rules.push(
        `@keyframes c${index}{0%,${percent(at - 1)}{visibility:hidden}${percent(at)}{visibility:visible;transform:none;animation-timing-function:steps(${length},end)}${percent(typedUntil)}{transform:translateX(${(length * cellWidth).toFixed(1)}px);visibility:visible}${percent(typedUntil + 1)},100%{transform:none;visibility:hidden}}`,
      );
      const x = 2 * cellWidth;
      const cover = `<g class="c" ${animation('c')}><rect class="back" x="${x}" y="${y - 2}" width="${width}" height="${lineHeight}"/><rect class="cursor" x="${x}" y="${y}" width="${cellWidth}" height="17"/></g>`;
      return `<g class="l" ${animation('l')}>${text}${cover}</g>`;
    });
    const last = Math.max(0, this.#shown.length - this.#rows);
    const scrolled = (count: number) => `transform:translateY(${-count * lineHeight}px)`;
    const steps = this.#shown.slice(this.#rows).map(({ at }, index) => `${percent(at)}{${scrolled(index + 1)}}`);
    rules.push(`@keyframes s{0%{${scrolled(0)}}${steps.join('')}100%{${scrolled(last)}}}`);
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${escaped(title)}</title>
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d6deeb}
.back{fill:#11161f}.cursor{fill:#d6deeb}.bold{font-weight:bold}.dim{fill:#7f8c9d}
.red{fill:#ff7b85}.green{fill:#7fd88f}.yellow{fill:#f0c674}.blue{fill:#82aaff}.magenta{fill:#c792ea}.cyan{fill:#7fdbca}
.l,.c,.s{animation:${duration}ms linear infinite}.l{visibility:hidden}.s{animation-name:s;animation-timing-function:step-end}
${rules.join('\n')}
@media (prefers-reduced-motion:reduce){.l,.c,.s{animation:none}.l{visibility:visible}.c{visibility:hidden}.s{${scrolled(last)}}}
</style>
<clipPath id="screen"><rect x="0" y="${barHeight}" width="${width}" height="${height - barHeight - padding / 2}"/></clipPath>
<rect class="back" width="${width}" height="${height}" rx="8"/>
<circle cx="20" cy="17" r="6" fill="#ff5f57"/><circle cx="40" cy="17" r="6" fill="#febc2e"/><circle cx="60" cy="17" r="6" fill="#28c840"/>
<g clip-path="url(#screen)"><g transform="translate(${padding} ${barHeight + padding})"><g class="s">
${lines.join('\n')}
</g></g></g>
</svg>
`;
  }
}

function spansOf(line: Line, indent: number): string {
  let column = indent;
  return line
    .map((piece) => {
      const span = spanOf(piece, column);
      column += piece.text.length;
      return span;
    })
    .join('');
}

/** Positions each run of words at its column with a fixed width, to align columns in any font. */
function spanOf({ text, style }: Line[number], column: number): string {
  const words = [...text.matchAll(/\S+(?: \S+)*/g)];
  return words
    .map(({ 0: run, index }) => {
      const x = ((column + index) * cellWidth).toFixed(1);
      const wide = (run.length * cellWidth).toFixed(1);
      return `<tspan x="${x}" textLength="${wide}" lengthAdjust="spacingAndGlyphs"${style && ` class="${style}"`}>${escaped(run)}</tspan>`;
    })
    .join('');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

const colours = ['', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', ''];

/** Returns the lines that the output leaves on the terminal. Throws for an unknown escape sequence. */
function linesOf(output: string, columns: number): Line[] {
  const lines: Array<Array<{ character: string; style: string }>> = [[]];
  let column = 0;
  let styles: string[] = [];
  for (const [token] of output.replaceAll('\u001b', '␛').matchAll(/␛\[[\d;?]*[A-Za-z]|␛.|\r|\n|[^␛\r\n]/gsu)) {
    const line = lines.at(-1) ?? [];
    if (token === '\r') column = 0;
    else if (token === '\n') lines.push([]);
    else if (/^␛\[[02]?K$/.test(token)) line.length = token === '␛[2K' ? 0 : Math.min(column, line.length);
    else if (/^␛\[[\d;]*m$/.test(token)) styles = styled(styles, token.slice(2, -1));
    else if (token.startsWith('␛')) throw new Error(`The picture of a terminal does not know ${token}.`);
    else {
      if (column === columns) {
        lines.push([]);
        column = 0;
      }
      const current = lines.at(-1) ?? [];
      while (current.length < column) current.push({ character: ' ', style: '' });
      current[column++] = { character: token, style: styles.join(' ') };
    }
  }
  if (lines.at(-1)?.length === 0) lines.pop();
  return lines.map(piecesOf);
}

/** Returns the styles after an SGR sequence (ECMA-48). */
function styled(before: string[], codes: string): string[] {
  let styles = before;
  for (const code of codes.split(';').map(Number)) {
    const colour = colours[code % 10] ?? '';
    const isColour = (code >= 30 && code <= 37) || (code >= 90 && code <= 97);
    if (code === 0) styles = [];
    else if (code === 1) styles = [...styles, 'bold'];
    else if (code === 2 || code === 90) styles = [...styles, 'dim'];
    else if (code === 22) styles = styles.filter((style) => style !== 'bold' && style !== 'dim');
    else if (code === 39) styles = styles.filter((style) => !colours.includes(style));
    else if (isColour && colour !== '') styles = [...styles.filter((style) => !colours.includes(style)), colour];
  }
  return styles;
}

function piecesOf(cells: Array<{ character: string; style: string }>): Line {
  const pieces: Line = [];
  for (const { character, style } of cells) {
    const last = pieces.at(-1);
    if (last?.style === style) last.text += character;
    else pieces.push({ text: character, style });
  }
  return pieces;
}
