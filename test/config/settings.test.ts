import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { jsonSchema, keySettings, settings, webhookSettings } from '../../src/config/settings.ts';
import { Authority } from '../support/certificates.ts';
import { Sandbox } from './sandbox.ts';

const example = readFileSync(new URL('../../config/rankd.example.yaml', import.meta.url), 'utf8');
/** The example with every commented-out setting enabled, except the declared key and webhook. */
const complete = example.slice(0, example.indexOf('#keys:\n')).replaceAll(/^( *)#(?=\S)/gm, '$1');

/** Lists of mappings, which no variable can set. */
const lists = ['webhooks.targets', 'discord.commands'];

let box: Sandbox;
beforeEach(() => {
  box = new Sandbox();
});
afterEach(() => box[Symbol.dispose]());

test('every setting has a one-line description, a variable, and an entry in the example below that description', () => {
  const document = parseDocument(complete);
  for (const { path, env, description } of settings) {
    expect(env).toBe(lists.includes(path) ? undefined : `RANKD_${path.replaceAll('.', '_').toUpperCase()}`);
    expect(description).toMatch(/^[^\n]{10,130}\.$|^[^\n]{10,130}[A-Z]$/);
    expect(document.hasIn(path.split('.')), `${path} in config/rankd.example.yaml: add it`).toBe(true);
    const line = `${'  '.repeat(path.split('.').length - 1)}# ${description}\n`;
    const name = path.split('.').at(-1);
    expect(
      complete.split(line)[1]?.trimStart().startsWith(`${name}:`),
      `${path} in config/rankd.example.yaml: copy its description from the schema into the line above it`,
    ).toBe(true);
  }
});

test('the example has the default of every setting with a default, and comments out all others', () => {
  const document = parseDocument(example).toJS();
  for (const { path, default: preset } of settings) {
    const inExample = path.split('.').reduce((node, name) => node?.[name], document);
    expect(inExample, path).toEqual(preset);
  }
});

test('the declared key in the example is valid and has every setting of a key', () => {
  const shown = example.slice(example.indexOf('#keys:\n'), example.indexOf('#webhooks:\n')).replaceAll(/^#/gm, '');
  box.write('rankd.yaml', `platform: { kind: simulated }\n${shown}`);
  expect(box.load().config.keys).toMatchObject([{ name: 'my-game', whitelist: { placeIds: [920587237] } }]);
  expect(Object.keys(parseDocument(shown).toJS().keys[0])).toEqual(keySettings.map(({ path }) => path));
  for (const { description } of keySettings) expect(shown).toContain(`# ${description}\n`);
});

test('the declared webhook in the example is valid and has every setting of a webhook', () => {
  const shown = example.slice(example.indexOf('#webhooks:\n')).replaceAll(/^#/gm, '');
  box.write('rankd.yaml', `platform: { kind: simulated }\n${shown}`);
  box.write('discord.url', 'https://discord.com/api/webhooks/1487000000000000857/a-token_of-it');
  expect(box.load().config.webhooks.targets).toMatchObject([{ name: 'staff-log', events: ['changes', 'alarms'] }]);
  expect(Object.keys(parseDocument(shown).toJS().webhooks.targets[0])).toEqual(webhookSettings.map(({ path }) => path));
  for (const { description } of webhookSettings) expect(shown).toContain(`# ${description}\n`);
});

test('the example without changes equals the defaults', () => {
  const bare = box.load().config;
  box.write('rankd.yaml', example);
  expect(box.load().config).toEqual(bare);
});

test('the example with every setting applied is valid', () => {
  box.write('rankd.yaml', complete);
  box.write('roblox.key', 's3cret');
  box.write('store.password', 's3cret');
  box.write('erasure.secret', 's3cret'.repeat(3));
  box.write('store-ca.pem', new Authority().pem);
  const { config, origins, warnings } = box.load();
  expect(config).toMatchObject({
    platform: { kind: 'open-cloud', groupId: 4199740 },
    group: { ladder: [1, 10, 20, 50] },
  });
  expect(warnings).toEqual([]);
  expect(settings.filter(({ path }) => origins.get(path)?.source !== 'file')).toEqual([]);
});

test('no two settings have the same variable', () => {
  const variables = settings.flatMap(({ env }) => env ?? []);
  expect(new Set(variables).size).toBe(settings.length - lists.length);
});

test('the JSON schema describes the settings as the file writes them, and allows no others', () => {
  const schema = jsonSchema();
  expect(schema).toMatchObject({ type: 'object', additionalProperties: false });
  const deadline = { type: 'string', default: '20s' };
  expect(schema).toMatchObject({ properties: { server: { properties: { deadline } } } });
});
