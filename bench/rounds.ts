type Measure<Figures> = () => Promise<Figures>;

/**
 * Measures both sides in short turns, A B B A, so that other load on the machine affects both equally. The first rounds
 * are not counted, because Node.js compiles hot code only after about ten thousand requests.
 */
export async function interleaved<Figures>(
  sides: { ours: Measure<Figures>; baseline: Measure<Figures> },
  rounds: number,
  uncounted = 4,
): Promise<Array<Pair<Figures>>> {
  const pairs: Array<Pair<Figures>> = [];
  for (let round = 0; round < uncounted + rounds; round += 1) {
    const baselineFirst = round % 2 === 1 ? await sides.baseline() : undefined;
    const ours = await sides.ours();
    pairs.push({ ours, baseline: baselineFirst ?? (await sides.baseline()) });
  }
  return pairs.slice(uncounted);
}

/**
 * The number of times that each side is started. Node.js compiles differently in each process, which makes one process
 * up to a tenth faster or slower than another.
 */
const starts = 3;

/** Divides `rounds`, rounded up, among several starts of both sides. */
export async function overStarts<Measured>(
  rounds: number,
  measure: (rounds: number, start: number) => Promise<Measured>,
): Promise<Measured[]> {
  const measured: Measured[] = [];
  while (measured.length < starts) measured.push(await measure(Math.ceil(rounds / starts), measured.length));
  return measured;
}

interface Pair<Figures> {
  ours: Figures;
  baseline: Figures;
}

export interface Spread {
  median: number;
  lowerQuartile: number;
  upperQuartile: number;
}

export function ratio<Figures>(pairs: Array<Pair<Figures>>, figure: (figures: Figures) => number): Spread {
  return spreadOf(pairs.map(({ ours, baseline }) => figure(ours) / figure(baseline)));
}

export function difference<Figures>(pairs: Array<Pair<Figures>>, figure: (figures: Figures) => number): Spread {
  return spreadOf(pairs.map(({ ours, baseline }) => figure(ours) - figure(baseline)));
}

export function spreadOf(figures: number[]): Spread {
  const ordered = figures.toSorted((a, b) => a - b);
  const quantile = (share: number) => {
    const place = share * (ordered.length - 1);
    const [below, above] = [ordered[Math.floor(place)] ?? Number.NaN, ordered[Math.ceil(place)] ?? Number.NaN];
    return below + (above - below) * (place % 1);
  };
  return { median: quantile(0.5), lowerQuartile: quantile(0.25), upperQuartile: quantile(0.75) };
}
