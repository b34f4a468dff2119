import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { expect, test } from 'vitest';
import { dataDirectory } from '../../src/config/data-dir.ts';
import { homeFolder } from '../../src/config/locate.ts';

const home = '/home/owner';
const cwd = '/work';
const serviceDataDir = '/nowhere/var/lib/rankd';

test('the data directory comes from the flag, else RANKD_DATA_DIR, else systemd, else the user’s home', () => {
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

test('an empty flag or variable counts as unset, and a relative XDG_DATA_HOME is ignored', () => {
  const env = { RANKD_DATA_DIR: '', STATE_DIRECTORY: '', XDG_DATA_HOME: 'relative' };
  expect(dataDirectory('', { env, home, cwd, serviceDataDir })).toBe('/home/owner/.local/share/rankd');
});

test('a relative data directory is resolved against the current directory', () => {
  expect(dataDirectory('data', { env: {}, home, cwd, serviceDataDir })).toBe('/work/data');
});

test("a user's home is HOME, else the account's home, else the root", () => {
  const noAccount = () => {
    throw new Error('uv_os_get_passwd returned ENOENT'); // as Node.js does for a user id without an account
  };
  expect(homeFolder({ HOME: '/home/ann' }, { account: noAccount })).toBe('/home/ann');
  expect(homeFolder({ HOME: '' })).toBe(userInfo().homedir);
  expect(homeFolder({}, { account: noAccount })).toBe('/');
});

const light = [
  ...['config/data-dir', 'config/locate', 'config/secret'],
  ...['base/errors', 'base/system', 'base/node-modules', 'base/read-file', 'base/text', 'base/time'],
];

test.each(light)('%s.ts, which every command loads, loads only Node’s own modules and other small ones', (name) => {
  const source = readFileSync(new URL(`../../src/${name}.ts`, import.meta.url), 'utf8');
  const imports = [...source.matchAll(/^import (?!type )[^;]*?from '([^']+)'/gm)].map(([, from]) => `${from}`);
  const paths = imports.map((from) => from.replace('../', '').replace(/^\.\//, `${name.split('/')[0]}/`));
  const isLight = (path: string) => path.startsWith('node:') || light.includes(path.replace(/\.ts$/, ''));
  expect(paths.filter((path) => !isLight(path))).toEqual([]);
});
