import { afterEach, beforeEach, expect, test } from 'vitest';
import { Sandbox } from './sandbox.ts';

let box: Sandbox;
beforeEach(() => {
  box = new Sandbox();
});
afterEach(() => box[Symbol.dispose]());

const whole = {
  application: '"1100000000000000001"',
  public_key: `"${'AB'.repeat(32)}"`,
  server: '"2200000000000000002"',
  commands: '[{ role: "3300000000000000003", key: hr }]',
};

/** Loads a file with these `discord` settings. Returns the error message; empty if there is none. */
function problemOf(settings: Partial<Record<keyof typeof whole, string>>): string {
  const lines = Object.entries(settings).map(([name, value]) => `  ${name}: ${value}`);
  box.write('rankd.yaml', `platform: { kind: simulated }\ndiscord:\n${lines.join('\n')}\n`);
  try {
    box.load();
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
  return '';
}

test('every setting of the section is read, and the public key may be in upper or lower case', () => {
  expect(problemOf(whole)).toBe('');
  expect(box.load().config.discord).toEqual({
    application: '1100000000000000001',
    publicKey: 'ab'.repeat(32),
    server: '2200000000000000002',
    rows: [{ role: '3300000000000000003', key: 'hr', at: 'rankd.yaml:6:50' }],
    apiBaseUrl: 'https://discord.com/api/v10',
  });
  expect(problemOf({})).toBe('');
  expect(box.load().config.discord).toBeUndefined();
});

test.each(Object.keys(whole))('without discord.%s, the other settings of the section are refused', (name) => {
  expect(problemOf({ ...whole, [name]: 'null' })).toContain(`discord.${name}`);
  const { [name as keyof typeof whole]: _, ...rest } = whole;
  expect(problemOf(rest)).toContain('`rankd discord setup` writes all of them');
});

test('an id that is not in quotes is refused, because YAML would round it', () => {
  for (const name of ['application', 'server'] as const)
    expect(problemOf({ ...whole, [name]: '1100000000000000001' })).toContain('a Discord id in quotes');
  expect(problemOf({ ...whole, commands: '[{ role: 3300000000000000003, key: hr }]' })).toContain('in quotes');
});

test.each([
  ['public_key', '"abc"', '64 hex digits'],
  ['commands', '[]', 'at least one row'],
  ['commands', 'hr', 'a list of rows'],
  ['commands', '[{ role: "3300000000000000003" }]', 'the name of a key'],
  [
    'commands',
    '[{ role: "3300000000000000003", key: a }, { role: "3300000000000000003", key: b }]',
    'other than that of discord.commands[0].role',
  ],
  ['commands', '[{ role: "3300000000000000003", key: hr, bot_token: x }]', 'unknown setting'],
])('discord.%s: %s is refused: %s', (name, value, why) => {
  expect(problemOf({ ...whole, [name]: value })).toContain(why);
});
