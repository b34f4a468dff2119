import { chmodSync, mkdirSync } from 'node:fs';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { ConfigSources } from '../../src/config/load.ts';
import { Sandbox } from './sandbox.ts';

let box: Sandbox;
beforeEach(() => {
  box = new Sandbox();
});
afterEach(() => box[Symbol.dispose]());

function platform(sources: Partial<ConfigSources>) {
  const loaded = box.load(sources);
  if (loaded.config.platform.kind !== 'open-cloud') throw new Error('simulated');
  return { ...loaded.config.platform, key: loaded.config.platform.apiKey.reveal(), loaded };
}

test('a group id selects the real platform, which needs a key', () => {
  expect(box.complaints('group: {id: 5}')).toEqual([
    'rankd.yaml:1:13 platform.api_key_file: missing; a real group requires a Roblox key: name its file in this setting, or set RANKD_PLATFORM_API_KEY',
  ]);
  box.write('rankd.yaml', 'group: {id: 5}\nplatform: {api_key_file: roblox.key}');
  box.write('roblox.key', '\uFEFF  s3cret \r\n');
  expect(platform({})).toMatchObject({
    groupId: 5,
    key: 's3cret',
    baseUrl: 'https://apis.roblox.com',
    legacyBaseUrl: 'https://groups.roblox.com',
  });
  const { origins } = platform({}).loaded;
  expect(origins.get('platform.kind')).toEqual({ source: 'default', at: undefined, value: 'open-cloud' });
  expect(origins.get('platform.api_key')).toEqual({ source: 'file', at: 'rankd.yaml:2:26', value: '[redacted]' });
});

test('the key comes from the flag, then the environment, then the systemd credential, then the file', () => {
  for (const name of ['file', 'variable', 'flag']) box.write(`${name}.key`, `from-${name}-file`);
  box.write('credentials/platform_api_key', 'from-systemd\n', 0o444);
  const env: Record<string, string> = { RANKD_GROUP_ID: '5', CREDENTIALS_DIRECTORY: box.path('credentials') };
  expect(platform({ env }).key).toBe('from-systemd');
  expect(platform({ env }).loaded.warnings).toEqual([]);
  box.write('rankd.yaml', 'platform: {api_key_file: file.key}');
  expect(platform({ env }).key).toBe('from-systemd');
  expect(platform({ env: { RANKD_GROUP_ID: '5' } }).key).toBe('from-file-file');
  env['RANKD_PLATFORM_API_KEY_FILE'] = 'variable.key';
  expect(platform({ env }).key).toBe('from-variable-file');
  env['RANKD_PLATFORM_API_KEY'] = ' from-variable ';
  expect(platform({ env }).key).toBe('from-variable');
  expect(platform({ env }).loaded.origins.get('platform.api_key')).toEqual({
    source: 'environment',
    at: 'RANKD_PLATFORM_API_KEY',
    value: '[redacted]',
    shadows: [{ source: 'environment', at: 'RANKD_PLATFORM_API_KEY_FILE', value: '[redacted]' }],
  });
  expect(platform({ env, flags: { 'platform.api_key_file': 'flag.key' } }).key).toBe('from-flag-file');
});

test('systemd credentials without the key do not count as a key', () => {
  expect(box.failure({ env: { RANKD_GROUP_ID: '5', CREDENTIALS_DIRECTORY: box.folder } }).message).toMatch(
    /^RANKD_GROUP_ID platform\.api_key_file: missing/,
  );
});

test('a simulated platform does not read the key, and has the group id', () => {
  box.write('rankd.yaml', 'group: {id: 5}\nplatform: {api_key_file: gone.key}');
  const { config, warnings } = box.load({ flags: { 'platform.kind': 'simulated' } });
  expect(config.platform).toEqual({ kind: 'simulated', isDefault: false, groupId: 5, groupFile: undefined });
  expect(warnings).toEqual([]);
});

test('a key without a group id causes a warning: the group is then simulated', () => {
  box.write('rankd.yaml', 'platform: {api_key_file: gone.key}');
  expect(box.load().warnings).toEqual([expect.stringContaining('(rankd.yaml:1:26) but no group.id')]);
  box.write('rankd.yaml', '');
  const env = { RANKD_PLATFORM_API_KEY: 'k' };
  expect(box.load({ env }).warnings).toEqual([expect.stringContaining('(RANKD_PLATFORM_API_KEY) but no group.id')]);
});

test('a key file that others can read causes a warning with the command that fixes it', () => {
  const path = box.write('roblox.key', 's3cret');
  const env = { RANKD_GROUP_ID: '5', RANKD_PLATFORM_API_KEY_FILE: 'roblox.key' };
  expect(box.load({ env }).warnings).toEqual([]);
  for (const mode of [0o640, 0o604, 0o644]) {
    chmodSync(path, mode);
    expect(box.load({ env }).warnings).toEqual([
      `${path} can be read by other users of this machine; run: chmod 600 ${path}`,
    ]);
  }
});

test('for a key file of another user, the warning first says who must own it, so that rankd can still read it', () => {
  const path = box.write('roblox.key', 's3cret');
  chmodSync(path, 0o640);
  const geteuid = vi.spyOn(process, 'geteuid').mockReturnValue(4_242);
  onTestFinished(() => geteuid.mockRestore());
  const env = { RANKD_GROUP_ID: '5', RANKD_PLATFORM_API_KEY_FILE: 'roblox.key' };
  expect(box.load({ env }).warnings).toEqual([
    expect.stringMatching(`; give it to the user who runs rankd, then run: chmod 600 ${path}$`),
  ]);
});

describe('a text that cannot be a key is refused without being shown', () => {
  const cookie = '_|WARNING:-DO-NOT-SHARE-THIS.--Sharing-this-will-allow-someone-to-log-in-as-you.|_s3cret';
  test.each([
    ['empty', '\n', 'is empty; put the Roblox key into it'],
    ['two lines', 's3cret\ns3cret', /^the key contains spaces, line breaks/],
    ['a space', 's3cret s3cret', /^the key contains spaces, line breaks/],
    ['in quotes', '"s3cret"\n', 'the key is in quotes; remove them'],
    ['not ASCII', 's3cret→', /^the key contains spaces, line breaks/],
    ['a cookie', cookie, /^this is a \.ROBLOSECURITY cookie/],
    ['a cookie in quotes', `"${cookie}"`, /^this is a \.ROBLOSECURITY cookie/],
    ['a cookie with its name', `.ROBLOSECURITY=${cookie};`, /^this is a \.ROBLOSECURITY cookie/],
    [
      'a cookie on several lines',
      ` '${cookie.slice(0, 14)}\n${cookie.slice(14)}' `,
      /^this is a \.ROBLOSECURITY cookie/,
    ],
  ])('%s', (_, text, complaint) => {
    box.write('roblox.key', text);
    const lines = box.complaints('group: {id: 5}\nplatform: {api_key_file: roblox.key}');
    expect(lines.join()).not.toContain('s3cret');
    expect(lines).toEqual([expect.stringMatching(/^rankd\.yaml:2:26 platform\.api_key_file: /)]);
    expect(lines[0]?.replace(/^.*api_key_file: /, '')).toMatch(complaint);
  });

  test('a missing file is named by its full path', () => {
    expect(box.complaints('group: {id: 5}\nplatform: {api_key_file: gone.key}')).toEqual([
      `rankd.yaml:2:26 platform.api_key_file: ${box.path('gone.key')} does not exist`,
    ]);
  });

  test('a folder in place of the key or of rankd.yaml, as Docker creates for a missing file, is refused with the fix', () => {
    expect(box.complaints('group: {id: 5}\nplatform: {api_key_file: .}')).toEqual([
      expect.stringMatching(
        /^rankd\.yaml:2:26 platform\.api_key_file: \/\S+ is a folder, .*Docker.* remove the folder/,
      ),
    ]);
    mkdirSync(box.path('docker.yaml'));
    const { code, message, hint } = box.failure({ configFile: 'docker.yaml' });
    expect([code, message]).toEqual(['config_invalid', expect.stringMatching(/^docker\.yaml is a folder, .*Docker/)]);
    expect(hint).toContain('remove the folder, put the file there');
  });
});

describe('a misplaced secret is never shown', () => {
  const secret = `s3cret${'Ab1+/='.repeat(10)}`;
  test.each([
    ['as an unknown setting', `platform:\n  api_key: ${secret}`],
    ['at the top', `api_key: ${secret}`],
    ['alone', secret],
    ['as a name', `platform: {${secret}}`],
    ['as the path of the file', `group: {id: 5}\nplatform: {api_key_file: "${secret}"}`],
    ['as an absolute-looking path', `group: {id: 5}\nplatform: {api_key_file: "/${secret.repeat(4)}"}`],
    ['as the address', `platform: {base_url: "${secret}"}`],
    ['as the kind', `platform: {kind: "${secret}"}`],
    ['in a list', `group: {ladder: ["${secret}"]}`],
    ['in broken YAML', `platform:\n  api_key: "${secret}\n  x: ${secret}`],
    ['after a token', `platform: {api_key_file: a} ${secret}`],
    ['as a tag', `platform: {api_key_file: !${secret} a}`],
    ['as an alias', `platform: {api_key_file: *${secret}}`],
  ])('%s', (_, text) => {
    box.write('rankd.yaml', text);
    const { message, hint } = box.failure();
    expect(message + hint).not.toContain('s3cret');
  });

  test('in a flag, and the error names the right setting', () => {
    const { message } = box.failure({ flags: { 'platform.api_key': secret } });
    expect(message).toBe(
      '--api-key: unknown setting; a secret never goes here: name its file in platform.api_key_file or set RANKD_PLATFORM_API_KEY',
    );
  });
});

test('printing, logging or serializing the configuration does not show the key', () => {
  const { config, origins } = box.load({ env: { RANKD_GROUP_ID: '5', RANKD_PLATFORM_API_KEY: 's3cret' } });
  const { platform } = config;
  const shown = [
    JSON.stringify(config),
    inspect(config, { depth: 9, showHidden: true }),
    inspect(origins, { depth: 9 }),
  ];
  if (platform.kind === 'open-cloud') shown.push(`${platform.apiKey}`, String(platform.apiKey));
  expect(shown).toHaveLength(5);
  for (const text of shown) expect(text).toContain('[redacted]');
  for (const text of shown) expect(text).not.toContain('s3cret');
});
