import type { Spread } from './rounds.ts';

export type Goal = { atLeast: number } | { atMost: number };

export interface Finding extends Spread {
  /** e.g. `rankd key list` */
  what: string;
  /** The baseline that the figure is compared with, or the goal in words; can be empty. */
  against: string;
  /** The measured quantity, e.g. `req/s`, `p99` or `time`. */
  figure: string;
  /** `×` means a ratio. */
  unit: '×' | 'ms' | 'KB' | 'packages' | 'changes' | 'requests' | 'trips';
  goal?: Goal;
}

export function isReached({ median, goal }: Pick<Finding, 'median' | 'goal'>): boolean {
  if (goal === undefined) return true;
  return 'atLeast' in goal ? median >= goal.atLeast : median <= goal.atMost;
}

export const tableHead = [
  '| what | against | figure | median | middle half | to reach |',
  '| --- | --- | --- | --- | --- | --- |',
];

export function rowOf(finding: Finding): string {
  const { what, against, figure, median } = finding;
  return `| ${what} | ${against} | ${figure} | ${valueText(median, finding)} | ${spread(finding)} | ${goalText(finding)} |`;
}

function spread(finding: Finding): string {
  const { lowerQuartile: lower, upperQuartile: upper } = finding;
  return lower === upper ? '' : `${valueText(lower, finding)} to ${valueText(upper, finding)}`;
}

function goalText(finding: Finding): string {
  const { goal } = finding;
  if (goal === undefined) return 'reported';
  const text = 'atLeast' in goal ? `≥ ${valueText(goal.atLeast, finding)}` : `≤ ${valueText(goal.atMost, finding)}`;
  return isReached(finding) ? text : `${text}, **not reached**`;
}

function valueText(value: number, { unit }: Finding): string {
  switch (unit) {
    case '×':
      return value.toFixed(2);
    case 'ms':
      return `${value.toFixed(2)} ms`;
    case 'trips':
      return `${value.toFixed(1)} trips`;
    case 'KB':
      return `${Math.round(value)} KB`;
    case 'packages':
    case 'changes':
    case 'requests':
      return `${value} ${unit}`;
  }
}
