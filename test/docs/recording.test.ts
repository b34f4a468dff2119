import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { systems } from '../../src/base/system.ts';
import { walk } from '../../src/cli/completion/complete.ts';
import { createProgram } from '../../src/cli/program.ts';
import type { TerminalIo } from '../support/command-io.ts';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

test("README's recording shows existing commands, in a picture that loads and runs nothing; `npm run recording` creates it again", () => {
  expect(read('README.md')).toContain('](docs/recording.svg)');
  const picture = read('docs/recording.svg');
  const [, title = ''] = /<title>A terminal: (.+)<\/title>/.exec(picture) ?? [];
  const typed = title.split('; ').filter((line) => line.startsWith('rankd '));
  expect(typed.length).toBeGreaterThan(3);
  const program = createProgram({ system: systems.linux } as TerminalIo);
  for (const line of typed) {
    const words = line.replace(/".*?"/, 'text').split(' ').slice(1);
    expect({ line, unknown: walk(program, words).unknown }).toEqual({ line, unknown: [] });
  }
  expect(picture).not.toMatch(/<script|href|url\((?!#)|@import|rk_live_|\/tmp\//);
});
