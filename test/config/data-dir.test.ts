import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { dataDirectory } from '../../src/config/data-dir.ts';

const home = '/home/owner';
const cwd = '/work';
const serviceDataDir = '/nowhere/var/lib/rankd';

test('the data directory is the flag, else RANKD_DATA_DIR, else systemd’s, else the user’s', () => {
  const env: Record<string, string> = {};
  expect(dataDirectory(undefined, { env, home, cwd, serviceDataDir })).toBe('/home/owner/.local/share/rankd');
  env['XDG_DATA_HOME'] = '/xdg';
  expect(dataDirectory(undefined, { env, home, cwd, serviceDataDir })).toBe('/xdg/rankd');
  env['STATE_DIRECTORY'] = '/var/lib/rankd:/var/lib/other';
  expect(dataDirectory(undefined, { env, home, cwd, serviceDataDir })).toBe('/var/lib/rankd');
  env['RANKD_DATA_DIR'] = '/data';
  expect(dataDirectory(undefined, { env, home, cwd, serviceDataDir })).toBe('/data');
  expect(dataDirectory('/flag', { env, home, cwd, serviceDataDir })).toBe('/flag');
});

test('what is empty counts as not set, and a relative XDG_DATA_HOME is ignored', () => {
  const env = { RANKD_DATA_DIR: '', STATE_DIRECTORY: '', XDG_DATA_HOME: 'relative' };
  expect(dataDirectory('', { env, home, cwd, serviceDataDir })).toBe('/home/owner/.local/share/rankd');
});

test('a relative directory is taken from the current one', () => {
  expect(dataDirectory('data', { env: {}, home, cwd, serviceDataDir })).toBe('/work/data');
});

/** What they may load beside those, which is among what is looked at. */
const light = ['../base/system.ts', './node-modules.ts'];

test.each(['config/data-dir', 'config/locate', 'base/system', 'base/node-modules', 'base/time', 'config/secret'])(
  '%s.ts loads nothing but Node’s own modules',
  (name) => {
    const source = readFileSync(new URL(`../../src/${name}.ts`, import.meta.url), 'utf8');
    const imports = [...source.matchAll(/from '([^']+)'/g)].map(([, from]) => from);
    expect(imports.filter((from) => !from?.startsWith('node:') && !light.includes(`${from}`))).toEqual([]);
  },
);
