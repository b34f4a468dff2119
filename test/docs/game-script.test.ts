import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { luauSnippet } from '../../src/cli/init/snippet.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const script = luauSnippet('https://rankd.example.com');

test('README shows the script for the game that `rankd init` prints', () => {
  const [, shown] = /```lua\n(.+?)\n```/s.exec(readme) ?? [];
  expect(shown).toBe(script);
});

test('no request that fails and no answer that is not JSON ends the script of the game', () => {
  const [, guarded = ''] = /pcall\(function\(\)\n(.+?)\n {4}end\)/s.exec(script) ?? [];
  const risks = /HttpService:(RequestAsync|JSONDecode)/g;
  expect(guarded.match(risks)).toHaveLength(2);
  expect(script.match(risks)).toHaveLength(2);
});

test('a command that the script of the game can not carry out is told in the log of the game', () => {
  const [, otherwise = ''] = /\n {4}else\n(.+?)\n {4}end/s.exec(script) ?? [];
  expect(otherwise).toMatch(/^ +warn\("/);
});

test('the script of the game calls the function that it defines', () => {
  const [, name = ''] = /local function (\w+)/.exec(script) ?? [];
  expect(script.split(`${name}(`)).toHaveLength(3);
});
