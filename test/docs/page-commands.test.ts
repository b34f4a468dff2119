import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { systems } from '../../src/base/system.ts';
import { walk } from '../../src/cli/completion/complete.ts';
import { createProgram } from '../../src/cli/program.ts';
import { sections } from '../../src/config/settings.ts';
import { newWebhookSecret } from '../../src/core/webhooks/webhook.ts';
import type { TerminalIo } from '../support/command-io.ts';
import { blocksOf, pages, pagesToType, rankdLines } from '../support/readme-commands.ts';
import { CliHome } from '../support/run-cli.ts';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const program = createProgram({ system: systems.linux } as TerminalIo);

test.each(pages)('%s names only existing commands, arguments and options of rankd', (page) => {
  for (const { line, words } of rankdLines(page)) {
    expect({ line, unknown: walk(program, words).unknown }).toEqual({ line, unknown: [] });
  }
});

test.each(pages)('%s names only existing npm scripts', (page) => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: object };
  const named = [...read(page).matchAll(/npm run ([\w-]+)/g)].map(([, name]) => name);
  expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named));
});

test('CONTRIBUTING explains each npm script that a person runs', () => {
  const names = Object.keys(JSON.parse(read('package.json')).scripts).filter(
    (name) => !/^(prepare|start|test)$/.test(name),
  );
  expect(names.filter((name) => !read('CONTRIBUTING.md').includes(`| \`npm run ${name}`))).toEqual([]);
});

test.each(pages)('a shell can parse the commands in %s', (page) => {
  const { status, stderr } = spawnSync('bash', ['-n'], { input: blocksOf(page, 'sh').join('\n'), encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
});

const snippets = pages.flatMap((page) => blocksOf(page, 'yaml').map((yaml) => ({ page, yaml })));
const configSnippets = snippets.filter(({ yaml }) =>
  Object.keys(parse(yaml)).every((name) => name === 'keys' || sections.has(name)),
);

const secretFiles = {
  'discord.url': 'https://discord.com/api/webhooks/1487000000000000857/a-token_of-it',
  'bot.url': 'https://bot.example/hook',
  'bot.secret': newWebhookSecret(),
};

test.each(configSnippets)('rankd accepts the rankd.yaml of $page: $yaml', async ({ yaml }) => {
  using home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), yaml);
  for (const [name, text] of Object.entries(secretFiles)) writeFileSync(home.path(name), text, { mode: 0o600 });
  const env: Record<string, string> = yaml.includes('id:') ? { RANKD_PLATFORM_API_KEY: 'a-key-of-roblox' } : {};
  const { code, stderr } = await home.here(['config', 'check', '--offline'], { env });
  expect([code, stderr]).toEqual([0, '']);
});

test("docs/hosting.md has README's first rank change in PowerShell syntax", () => {
  const { post } = systems.windows;
  const typed = pagesToType.trial().map((line) => {
    const [, url = '', body = ''] = /^curl -sw '\\n' '?(http[^ ']+)'? .* -d '(.+)'$/.exec(line) ?? [];
    return body === '' ? line : post({ url, secret: '$(cat trial.key)', body: JSON.parse(body) });
  });
  const blocks = blocksOf('docs/hosting.md', 'powershell').map((block) => block.replaceAll('|\n  ', '| '));
  expect(blocks).toContain(`${typed.join('\n')}\n`);
  expect(blocks.join('')).not.toMatch(/'|&&|^curl |\| curl /m);
  expect(blocks[0]?.trim().split('\n').join(' && ')).toBe(pagesToType.install()[0]);
});

test.each([...pages, 'CHANGELOG.md'])('%s has lines of at most 140 characters, except for tables', (page) => {
  expect(
    read(page)
      .split('\n')
      .filter((line) => line.length > 140 && !/^ *\|/.test(line)),
  ).toEqual([]);
});

test('README links to every page for users directly in docs/', () => {
  const contributorPages = ['docs/adding-a-platform.md', 'docs/adding-a-store.md'];
  const userPages = pages.filter((page) => /^docs\/[^/]+$/.test(page) && !contributorPages.includes(page));
  const [, list = ''] = read('README.md').split('## All pages');
  expect(userPages.filter((page) => !list.includes(`](${page})`))).toEqual([]);
});

test('README has at most 130 lines', () => {
  expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(130);
});

test('README begins with the command that starts rankd, and names the check that CI runs', () => {
  expect(blocksOf('README.md', 'sh')[0]?.trim()).toBe('npm ci && npx rankd serve');
  expect(pagesToType.check()).toEqual([read('.ci/run').trim().split('\n').at(-1)]);
});
