/** One side of a comparison: measures once, and tells its figures. */
type Measure<Figures> = () => Promise<Figures>;

/** Measures both sides in turn, A B A B, so that whatever else the machine does meets both; one pair before that warms both up. */
export async function interleaved<Figures>(
  sides: { ours: Measure<Figures>; baseline: Measure<Figures> },
  rounds: number,
): Promise<Array<Pair<Figures>>> {
  const pairs: Array<Pair<Figures>> = [];
  for (let round = 0; round <= rounds; round += 1) {
    const pair = { ours: await sides.ours(), baseline: await sides.baseline() };
    if (round > 0) pairs.push(pair);
  }
  return pairs;
}

interface Pair<Figures> {
  ours: Figures;
  baseline: Figures;
}

/** The median over rounds, with the lowest and the highest. */
export interface Spread {
  median: number;
  lowest: number;
  highest: number;
}

export function ratio<Figures>(pairs: Array<Pair<Figures>>, figure: (figures: Figures) => number): Spread {
  return spreadOf(pairs.map(({ ours, baseline }) => figure(ours) / figure(baseline)));
}

export function difference<Figures>(pairs: Array<Pair<Figures>>, figure: (figures: Figures) => number): Spread {
  return spreadOf(pairs.map(({ ours, baseline }) => figure(ours) - figure(baseline)));
}

export function spreadOf(figures: number[]): Spread {
  const ordered = figures.toSorted((a, b) => a - b);
  const middle = ordered.length / 2;
  const at = (index: number) => ordered[index] ?? Number.NaN;
  const median = Number.isInteger(middle) ? (at(middle - 1) + at(middle)) / 2 : at(Math.floor(middle));
  return { median, lowest: at(0), highest: at(ordered.length - 1) };
}
