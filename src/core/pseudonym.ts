import { crypto } from '../base/node-modules.ts';

/** A number that stands for a person who was forgotten. It is drawn, not worked out, so that nothing leads back from it to the user. */
export function newPseudonym(): number {
  return -crypto().randomInt(1, 2 ** 47);
}

/** True for the id of a person who was forgotten: no user has one below zero. */
export function isPseudonym(userId: number): boolean {
  return userId < 0;
}
