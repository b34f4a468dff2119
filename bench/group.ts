/** The bench's group: its id, and the ranks of its roles. */
export const group = { id: 1, base: 1, trainee: 10, officer: 20, leader: 200 };

/** Returns the id of the role with this rank. */
export function roleIdOf(rank: number): number {
  return rank + 100;
}
