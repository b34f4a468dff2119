import { readFileSync, writeFileSync } from 'node:fs';
import { type Finding, rowOf, tableHead } from './findings.ts';

/** The contents of `results.json`. */
export interface Results {
  conditions: Record<string, string>;
  parts: Record<string, Finding[]>;
}

/**
 * Adds newly measured parts to the stored results, in the order of `names`. Drops the stored results if they were
 * measured under different conditions.
 */
export function withPart(stored: Results, { conditions, parts }: Results, names: readonly string[]): Results {
  const isComparable = JSON.stringify(stored.conditions) === JSON.stringify(conditions);
  const all = { ...(isComparable && stored.parts), ...parts };
  const inOrder = names.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]] as const]));
  return { conditions, parts: Object.fromEntries(inOrder) };
}

const resultsFile = new URL('results.json', import.meta.url);
const readmeFile = new URL('README.md', import.meta.url);
const inReadme = /(?<=<!-- bench -->\n)[\s\S]*?(?=\n<!-- end of bench -->)/;

export function publish(results: Results): void {
  writeFileSync(resultsFile, `${JSON.stringify(results, null, 2)}\n`);
  const readme = readFileSync(readmeFile, 'utf8');
  writeFileSync(
    readmeFile,
    readme.replace(inReadme, () => summaryOf(results)),
  );
}

export function published(): { results: Results; summary: string | undefined } {
  const results = JSON.parse(readFileSync(resultsFile, 'utf8')) as Results;
  return { results, summary: inReadme.exec(readFileSync(readmeFile, 'utf8'))?.[0] };
}

export function summaryOf({ conditions, parts }: Results): string {
  const means = Object.entries(conditions).map(([name, value]) => `- ${name}: ${value}`);
  return [...tableHead, ...Object.values(parts).flat().map(rowOf), '', 'Measured with:', '', ...means].join('\n');
}
