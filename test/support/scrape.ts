import parse from 'parse-prometheus-text-format';

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** What Prometheus would read at this address now. */
export async function scrape(url: string | undefined): Promise<Sample[]> {
  const response = await fetch(url ?? '');
  const text = await response.text();
  const untyped = text.replaceAll(/^# TYPE \S+ histogram$/gm, ''); // of a typed one the parser keeps a single series
  return parse(untyped).flatMap(({ name, metrics }) =>
    metrics.map(({ labels = {}, value }) => ({ name, labels, value: Number(value) })),
  );
}

/** The value of the one sample of that name with these labels; 0 where there is none. */
export function sampleOf(samples: Sample[], name: string, labels: Record<string, string> = {}): number {
  const [found, ...more] = samples.filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  if (more.length > 0) throw new Error(`${more.length + 1} samples of ${name} have these labels`);
  return found?.value ?? 0;
}
