export const group = { id: 1, base: 1, trainee: 10, officer: 20, leader: 200 };

export function roleIdOf(rank: number): number {
  return rank + 100;
}
