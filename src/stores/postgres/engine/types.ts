import pg from 'pg';
import { fromText } from './statement.ts';

const [int8, text, int8Array, textArray] = [20, 25, 1016, 1009];

/** How values come out: ids and times as numbers, which all of them are, and texts as they were put in. */
export const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === int8) return toNumber;
    if (oid === text) return fromText;
    const parse = pg.types.getTypeParser(oid, format as 'text');
    if (oid === int8Array) return (value: string) => (parse(value) as string[]).map(toNumber);
    if (oid === textArray) return (value: string) => (parse(value) as string[]).map(fromText);
    return parse;
  },
};

function toNumber(value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is beyond what rankd counts with`);
  return number;
}
