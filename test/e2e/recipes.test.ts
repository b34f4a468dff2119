import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CliHome } from '../support/run-cli.ts';

const [, recipes = ''] = readFileSync(new URL('../../docs/policy.md', import.meta.url), 'utf8').split(
  '## Three recipes',
);
const each = recipes
  .split(/^### /m)
  .slice(1)
  .map((text) => ({
    title: text.split('\n', 1)[0] ?? '',
    yaml: blockIn(text, 'yaml'),
    setUp: blockIn(text, 'sh').trim().split('\n'),
    rows: [...text.matchAll(/^\| `rankd (.+?)` \| (?:`(\w+)`|yes): /gm)].map(([, line = '', code]) => ({ line, code })),
  }));

test('docs/policy.md has recipes for a points game, a staff panel and a training center', () => {
  expect(each.map(({ title, rows }) => [title, rows.length > 3])).toEqual(
    ['Points game', 'Staff panel', 'Training center'].map((title) => [title, true]),
  );
});

test.concurrent.each(each)(
  'the recipe in docs/policy.md for a $title fits the group, and decides as the page describes',
  async ({ yaml, setUp, rows }) => {
    using home = new CliHome();
    writeFileSync(home.path('rankd.yaml'), yaml);
    expect(await home.here(['config', 'check'])).toMatchObject({ code: 0 });
    for (const line of setUp) expect(await home.here(wordsOf(line).slice(1))).toMatchObject({ code: 0 });
    for (const { line, code } of rows) {
      const answer = await home.here([...wordsOf(line), '--json']);
      const { code: refusal, checks = [] } = answer.json<{ code?: string; checks?: Array<{ code?: string }> }>();
      const refusals = [refusal, ...checks.map((check) => check.code)].filter((found) => found !== undefined);
      expect({ line, said: refusals[0], isDone: answer.code === 0 }).toEqual({
        line,
        said: code,
        isDone: code === undefined,
      });
    }
  },
);

function blockIn(text: string, language: string): string {
  return new RegExp(`\`\`\`${language}\\n(.+?)\`\`\``, 's').exec(text)?.[1] ?? '';
}

function wordsOf(line: string): string[] {
  return line.trim().split(' ');
}
