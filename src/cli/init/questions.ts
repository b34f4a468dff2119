import { InvalidArgumentError } from 'commander';
import type { Io } from '../io.ts';
import { printableLines } from '../output/safe-text.ts';

/** Asks until `parse` accepts the answer; shows why it does not. An empty answer means the preset, if there is one. */
export async function ask<T>(
  io: Pick<Io, 'ask' | 'stderr'>,
  { question, parse, preset = '' }: { question: string; parse: (text: string) => T | Promise<T>; preset?: string },
): Promise<T> {
  for (;;) {
    const text = (await io.ask(printableLines(question))).trim() || preset;
    try {
      return await parse(text);
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      io.stderr(`${printableLines(error.message)}\n`);
    }
  }
}
