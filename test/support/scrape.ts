import parse from 'parse-prometheus-text-format';

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export async function scrape(url: string | undefined): Promise<Sample[]> {
  // uncompressed, because a manual clock does not wait for the threads that decompress
  const response = await fetch(url ?? '', { headers: { 'accept-encoding': 'identity' } });
  const text = await response.text();
  // the parser would reduce a typed histogram to a single series
  const untyped = text.replaceAll(/^# TYPE \S+ histogram$/gm, '');
  return parse(untyped).flatMap(({ name, metrics }) =>
    metrics.map(({ labels = {}, value }) => ({ name, labels, value: Number(value) })),
  );
}

/**
 * Returns the value of the sample with this name and at least these labels, or 0 if there is none. Throws if there are
 * several.
 */
export function sampleOf(samples: Sample[], name: string, labels: Record<string, string> = {}): number {
  const [found, ...more] = samples.filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  if (more.length > 0) throw new Error(`${more.length + 1} samples of ${name} have these labels`);
  return found?.value ?? 0;
}
