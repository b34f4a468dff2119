import { crypto } from '../base/node-modules.ts';

/** A random number that replaces a forgotten person. It is not derived from the user id, so it can't be traced back. */
export function newPseudonym(): number {
  return -crypto().randomInt(1, 2 ** 47);
}

/** True for the id of a forgotten person: no user id is below zero. */
export function isPseudonym(userId: number): boolean {
  return userId < 0;
}
