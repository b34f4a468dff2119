import { isoTime } from '../../base/time.ts';
import type { ChartBar, ChartView } from '../views/chart.ts';

/** Rank changes by hour and by day, oldest first; a period that is not counted yet has null. */
export function chartDocument({ hours, days, isComplete }: ChartView) {
  return { hours: hours.map(barDocument), days: days.map(barDocument), isComplete };
}

function barDocument({ from, ...counts }: ChartBar) {
  return { from: isoTime(from), ...counts };
}
