import { chmodSync, chownSync, lchownSync, renameSync, statSync, symlinkSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { settings } from '../../src/config/settings.ts';
import { thisUser } from '../support/command-io.ts';
import { Sandbox } from './sandbox.ts';

let box: Sandbox;
beforeEach(() => {
  box = new Sandbox();
});
afterEach(() => box[Symbol.dispose]());

test('without any configuration, rankd runs on a simulated group with the documented defaults', () => {
  const { config, file, warnings } = box.load();
  expect(file).toBeUndefined();
  expect(warnings).toEqual([]);
  expect(config).toEqual({
    platform: { kind: 'simulated', isDefault: true, groupId: undefined, groupFile: undefined },
    group: { ladder: undefined, rankOne: 'custom' },
    server: {
      host: '127.0.0.1',
      port: 7265,
      publicUrl: undefined,
      deadlineMs: 20_000,
      maxConnections: 1000,
      trustedProxies: ['127.0.0.0/8', '::1'],
    },
    policy: {
      minRank: 1,
      maxRank: 254,
      lockedRoles: [],
      privilegedRoles: 'allow',
      protectedMembers: [],
      protectedRoles: [],
      steps: 'any',
      selfRank: 'allow',
      stale: 'ignore',
      rankerCheck: 'off',
      minRankerRank: 1,
      reason: 'optional',
      cooldowns: [],
      rankerCooldownMs: 0,
      breaker: { enabled: true, demotions: 10, highRank: undefined, highChanges: 5, windowMs: 600_000 },
      suspension: { role: undefined, maxMs: 31_536_000_000 },
    },
    workspace: undefined,
    security: { robloxId: 'off' },
    limits: {
      rankPerMinute: 600,
      rankBurst: 300,
      verifyPerMinute: 3000,
      placePerMinute: 0,
      failedAuthPerMinute: 60,
    },
    metrics: { enabled: false, host: '127.0.0.1', port: 9265 },
    dashboard: { enabled: false, host: '127.0.0.1', port: 7266, url: undefined, path: undefined },
    retention: { historyMs: undefined, auditMs: undefined },
    audit: { headFile: undefined },
    erasure: { secret: undefined },
    webhooks: { timeoutMs: 15_000, allowPrivate: [], callerUrl: 'ignore', targets: [], proxy: undefined },
    discord: undefined,
    store: undefined,
    nodeName: undefined,
    log: { level: 'info' },
    compat: [],
    keys: [],
  } satisfies Config);
});

const samples: Record<string, [file: string, env: string, flag: string]> = {
  'group.id': ['11', '12', '13'],
  'group.ladder': ['[1, 11]', '1,12', '1,13'],
  'group.rank_1': ['base', 'base', 'base'],
  'platform.kind': ['simulated', 'open-cloud', 'simulated'],
  'platform.api_key_file': ['a.key', 'b.key', 'c.key'],
  'platform.base_url': ['http://127.0.0.1:1', 'http://127.0.0.1:2', 'http://127.0.0.1:3'],
  'platform.users_base_url': ['http://127.0.0.1:4', 'http://127.0.0.1:5', 'http://127.0.0.1:6'],
  'platform.develop_base_url': ['http://127.0.0.1:7', 'http://127.0.0.1:8', 'http://127.0.0.1:9'],
  'platform.legacy_base_url': ['http://127.0.0.1:1', 'http://127.0.0.1:2', 'http://127.0.0.1:3'],
  'platform.group_file': ['a.yaml', 'b.yaml', 'c.yaml'],
  'server.host': ['::1', '127.0.0.2', '0.0.0.0'],
  'server.port': ['1', '2', '3'],
  'server.public_url': ['https://a.example', 'https://b.example', 'https://c.example'],
  'server.deadline': ['1s', '2s', '3s'],
  'server.max_connections': ['1', '2', '3'],
  'server.trusted_proxies': ['[10.0.0.1]', '10.0.0.2', '10.0.0.0/8,fd00::/8'],
  'policy.min_rank': ['2', '3', '4'],
  'policy.max_rank': ['11', '12', '13'],
  'policy.locked_roles': ['[11]', '12', '13,14'],
  'policy.privileged_roles': ['operator', 'allow', '13,14'],
  'policy.protected_members': ['[11]', '12', '13,14'],
  'policy.protected_roles': ['[11]', '12', '13,14'],
  'policy.steps': ['adjacent', 'any', 'adjacent'],
  'policy.self_rank': ['deny', 'allow', 'deny'],
  'policy.reason': ['required', 'optional', 'required'],
  'policy.stale': ['refuse', 'ignore', 'refuse'],
  'policy.ranker_check': ['claimed', 'verify', 'claimed'],
  'policy.min_ranker_rank': ['2', '3', '4'],
  'policy.cooldown': ['1s', '2s', '3s'],
  'policy.ranker_cooldown': ['1s', '2s', '3s'],
  'policy.breaker.enabled': ['false', 'true', 'false'],
  'policy.breaker.demotions': ['1', '2', '3'],
  'policy.breaker.high_rank': ['1', '2', '3'],
  'policy.breaker.high_changes': ['1', '2', '3'],
  'policy.breaker.window': ['1m', '2m', '3m'],
  'policy.suspension.role': ['1', '2', '3'],
  'policy.suspension.max': ['1d', '2d', '3d'],
  'workspace.id': ['ws_a', 'ws_b', 'ws_c'],
  'security.roblox_id': ['warn', 'enforce', 'warn'],
  'limits.rank': ['1', '2', '3'],
  'limits.rank_burst': ['1', '2', '3'],
  'limits.verify': ['0', '2', '3'],
  'limits.place': ['1', '2', '3'],
  'limits.failed_auth': ['1', '2', '3'],
  'metrics.enabled': ['true', 'true', 'true'],
  'metrics.host': ['::1', '127.0.0.2', '0.0.0.0'],
  'metrics.port': ['1', '2', '3'],
  'dashboard.enabled': ['true', 'true', 'true'],
  'dashboard.host': ['::1', '127.0.0.2', '127.0.0.3'],
  'dashboard.port': ['1', '2', '3'],
  'dashboard.path': ['/a', '/b', '/c/d'],
  'dashboard.url': ['https://a.example', 'http://127.0.0.1:7266', 'https://c.example'],
  'store.url': ['postgres://a@a/a', 'postgresql://b@b:1/b', 'postgres://c@c/c'],
  'store.password_file': ['a.password', 'b.password', 'c.password'],
  'store.ca_file': ['a.pem', 'b.pem', 'c.pem'],
  'store.tls': ['verify', 'off', 'verify'],
  'store.node': ['a', 'b:1', 'c'],
  'history.keep': ['1d', '48h', '365d'],
  'audit.keep': ['1d', '48h', '365d'],
  'erasure.secret_file': ['a.key', 'b.key', 'c.key'],
  'audit.head_file': ['a.heads', 'b.heads', 'c.heads'],
  'webhooks.timeout': ['1s', '2s', '3s'],
  'webhooks.allow_private': ['[127.0.0.1]', '10.0.0.0/8', '::1, 192.168.1.0/24'],
  'webhooks.caller_url': ['ignore', 'match', 'ignore'],
  'discord.application': ['"11111"', '22222', '33333'],
  'discord.public_key': [`"${'a'.repeat(64)}"`, 'b'.repeat(64), 'c'.repeat(64)],
  'discord.server': ['"11111"', '22222', '33333'],
  'discord.api_base_url': ['https://a.example', 'http://127.0.0.1:7400/api/v10', 'https://c.example'],
  'log.level': ['trace', 'debug', 'silent'],
  compat: ['[rankgun]', 'noblox-server', 'rankgun,noblox-server'],
  keys: ['a', 'b', 'c'].map((name) => `[{"name": "${name}", "hash": "${name.repeat(64)}"}]`) as [
    string,
    string,
    string,
  ],
};

describe('a flag overrides the environment, which overrides the file, which overrides the default', () => {
  const settingsWithVariables = settings.flatMap(({ path, env }) => (env === undefined ? [] : [[path, env] as const]));
  test.each(settingsWithVariables)('%s', (path, env) => {
    const [inFile, inEnv, inFlag] =
      samples[path] ?? expect.fail(`add three values of ${path} to the samples in this file`);
    for (const key of ['a', 'b', 'c']) box.write(`${key}.key`, key.repeat(16));
    const lines = path.split('.').map((name, depth) => `${'  '.repeat(depth)}${name}:`);
    const other = path.startsWith('platform.') || path === 'group.id' ? '' : 'platform: {kind: simulated}\n';
    const needed = [
      'application: "12345"',
      `public_key: "${'d'.repeat(64)}"`,
      'server: "12345"',
      'commands: [{ role: "12345", key: hr }]',
    ];
    const together = path.startsWith('discord.')
      ? needed.filter((line) => !path.endsWith(line.split(':')[0] ?? ''))
      : [];
    box.write('rankd.yaml', `${other}${[`${lines.join('\n')} ${inFile}`, ...together].join('\n  ')}\n`);
    const always = { RANKD_GROUP_ID: path === 'group.id' ? '' : '5', RANKD_PLATFORM_API_KEY: 'k' };

    const fromFile = box.load({ env: always });
    const fromEnv = box.load({ env: { ...always, [env]: inEnv } });
    const fromFlag = box.load({ env: { ...always, [env]: inEnv }, flags: { [path]: inFlag } });

    expect([fromFile, fromEnv, fromFlag].map(({ origins }) => origins.get(path)?.source)).toEqual([
      'file',
      'environment',
      'flag',
    ]);
    const values = [fromFile, fromEnv, fromFlag].map(({ origins }) =>
      JSON.stringify(origins.get(path)?.value).replace(/["[\]]/g, ''),
    );
    expect(values).toEqual([inFile, inEnv, inFlag].map((text) => text.replace(/["[\] ]/g, '')));
  });
});

test('the winning value is in the configuration, and its origin lists the values that it overrides', () => {
  box.write(
    'rankd.yaml',
    'server:\n  port: 1\n  deadline: 2s\npolicy: {locked_roles: [7], breaker: {enabled: true}}\n',
  );
  const env = { RANKD_SERVER_PORT: '2', RANKD_POLICY_LOCKED_ROLES: '8, 9', RANKD_POLICY_BREAKER_ENABLED: 'false' };
  const { config, origins } = box.load({ env, flags: { 'server.port': '3' } });
  expect(config.server).toMatchObject({ host: '127.0.0.1', port: 3, deadlineMs: 2000 });
  expect(config.policy).toMatchObject({ lockedRoles: [8, 9], breaker: { enabled: false } });
  expect(origins.get('server.port')).toEqual({
    source: 'flag',
    at: '--port',
    value: 3,
    shadows: [
      { source: 'environment', at: 'RANKD_SERVER_PORT', value: 2 },
      { source: 'file', at: 'rankd.yaml:2:9', value: 1 },
    ],
  });
  expect(origins.get('policy.locked_roles')).toEqual({
    source: 'environment',
    at: 'RANKD_POLICY_LOCKED_ROLES',
    value: [8, 9],
    shadows: [{ source: 'file', at: 'rankd.yaml:4:24', value: [7] }],
  });
  expect(origins.get('server.deadline')).toEqual({ source: 'file', at: 'rankd.yaml:3:13', value: '2s' });
  expect(origins.get('log.level')).toEqual({ source: 'default', at: undefined, value: 'info' });
});

test('a cooldown is one duration for all members, or a list by rank', () => {
  const cooldowns = (text: string) => {
    box.write('rankd.yaml', `policy: {cooldown: ${text}}`);
    return box.load().config.policy.cooldowns;
  };
  expect(cooldowns('0s')).toEqual([]);
  expect(cooldowns('2s')).toEqual([{ from: 0, forMs: 2_000 }]);
  expect(cooldowns('[{from: 20, for: 7d}, {from: 10, for: 0s}]')).toEqual([
    { from: 20, forMs: 604_800_000 },
    { from: 10, forMs: 0 },
  ]);
});

test('an overridden long text is redacted, because it may be a misplaced secret', () => {
  box.write('rankd.yaml', `log: {level: ${'s3cret'.repeat(8)}}`);
  const { origins } = box.load({ env: { RANKD_LOG_LEVEL: 'info' } });
  expect(origins.get('log.level')).toMatchObject({ value: 'info', shadows: [{ source: 'file', value: '[redacted]' }] });
});

test('an empty variable counts as unset', () => {
  expect(box.load({ env: { RANKD_SERVER_PORT: '', RANKD_NONSENSE: '', RANKD_CONFIG: '' } }).config.server.port).toBe(
    7265,
  );
});

describe('the file', () => {
  test('is found in the documented order of places', () => {
    const portOf = (sources = {}) => box.load(sources).config.server.port;
    const env = { XDG_CONFIG_HOME: box.path('xdg') };
    box.write('home/.config/rankd/rankd.yaml', 'server: {port: 1}');
    expect(portOf()).toBe(1);
    box.write('xdg/rankd/rankd.yaml', 'server: {port: 2}');
    expect(portOf({ env })).toBe(2);
    box.write('rankd.yaml', 'server: {port: 3}');
    expect(portOf({ env })).toBe(3);
    box.write('named.yaml', 'server: {port: 4}');
    expect(portOf({ env: { ...env, RANKD_CONFIG: 'named.yaml' } })).toBe(4);
    box.write('flag.yaml', 'server: {port: 5}');
    expect(portOf({ env: { ...env, RANKD_CONFIG: 'named.yaml' }, configFile: 'flag.yaml' })).toBe(5);
    expect(box.load({ configFile: 'flag.yaml' }).file).toBe(box.path('flag.yaml'));
  });

  test.each(['rankd.yml', 'rankd.yaml.txt'])('%s is not read, which causes a warning', (name) => {
    const path = box.write(name, '');
    expect(box.load().warnings).toEqual([
      `rankd does not read ${path}: rename it to rankd.yaml, or name it with --config.`,
    ]);
    expect(box.load({ configFile: name }).warnings).toEqual([]);
    box.write('rankd.yaml', '');
    expect(box.load().warnings).toEqual([]);
  });

  test('must exist if it is named', () => {
    box.write('rankd.yaml', '');
    const error = box.failure({ configFile: 'gone.yaml' });
    expect(error).toMatchObject({
      code: 'config_invalid',
      message: 'The configuration file gone.yaml does not exist.',
    });
    expect(error.hint).toContain('rankd init creates');
    expect(box.failure({ env: { RANKD_CONFIG: 'gone.yaml' } }).code).toBe('config_invalid');
  });

  test('must not be a link to a file that does not exist', () => {
    symlinkSync(box.path('gone.yaml'), box.path('rankd.yaml'));
    expect(box.failure().message).toBe('The configuration file rankd.yaml is a link to a file that does not exist.');
  });

  describe('from a place where another user may have written it', () => {
    const isRoot = thisUser()?.uid === 0; // only root can give files to another user
    const other = 65_534;

    test.runIf(isRoot).each([
      {
        what: 'it belongs to them',
        change: () => chownSync(box.path('rankd.yaml'), other, 0),
        says: 'it belongs to another',
      },
      { what: 'it is their link', change: makeLinkOwnedByOther, says: 'it belongs to another' },
      {
        what: 'it links to their file',
        change: makeLinkToOthersFile,
        says: 'it is a link to a file that belongs to another',
      },
      {
        what: 'its folder belongs to them',
        change: () => chownSync(box.folder, other, 0),
        says: 'its folder belongs to',
      },
    ])('is not read: $what', ({ change, says }) => {
      box.write('rankd.yaml', 'server: {port: 1}');
      change();
      const error = box.failure();
      expect(error).toMatchObject({ code: 'no_permission', message: expect.stringContaining(says) });
      expect(error.message).toContain(box.path('rankd.yaml'));
      expect(error.hint).toContain(`--config ${box.path('rankd.yaml')}`);
      expect(box.load({ configFile: 'rankd.yaml' }).config.server.port).toBe(1);
      expect(box.load({ env: { RANKD_CONFIG: 'rankd.yaml' } }).config.server.port).toBe(1);
    });

    const open = [
      { what: 'everyone can write to it', path: 'rankd.yaml', mode: 0o666, says: 'other users can write to it' },
      { what: 'its group can write to it', path: 'rankd.yaml', mode: 0o664, says: 'other users can write to it' },
      { what: 'everyone can write to its folder', path: '.', mode: 0o777, says: 'can write to its folder' },
    ];
    test.each(open)('is not read: $what', ({ path, mode, says }) => {
      box.write('rankd.yaml', '');
      chmodSync(box.path(path), mode);
      const user = { uid: statSync(box.folder).uid, gid: -1 }; // a group that owns no file
      if (isRoot) chownSync(box.path(path), 0, 54_321);
      expect(box.failure({ user })).toMatchObject({ code: 'no_permission', message: expect.stringContaining(says) });
      expect(box.load({ configFile: 'rankd.yaml' }).config.server.port).toBe(7265);
    });

    test("is read if only this user's own group can write to it, as with the umask 002", () => {
      chmodSync(box.write('rankd.yaml', 'server: {port: 1}'), 0o664);
      chmodSync(box.folder, 0o775);
      expect(box.load().config.server.port).toBe(1);
    });

    test('is read if it belongs to this user in a folder such as /tmp, where others cannot replace it', () => {
      box.write('rankd.yaml', 'server: {port: 1}');
      chmodSync(box.folder, 0o1777);
      expect(box.load().config.server.port).toBe(1);
    });

    test.runIf(isRoot)('is read if it belongs to the caller of sudo', () => {
      const file = box.write('rankd.yaml', 'server: {port: 1}');
      for (const path of [file, box.folder]) chownSync(path, other, other);
      chmodSync(file, 0o664);
      const env = { SUDO_UID: String(other), SUDO_GID: String(other) };
      expect(box.load({ env }).config.server.port).toBe(1);
      expect(box.failure({ env: { ...env, SUDO_UID: String(other + 1) } }).code).toBe('no_permission');
    });

    function makeLinkOwnedByOther(): void {
      renameSync(box.path('rankd.yaml'), box.path('real.yaml'));
      symlinkSync('real.yaml', box.path('rankd.yaml'));
      lchownSync(box.path('rankd.yaml'), other, 0);
    }

    function makeLinkToOthersFile(): void {
      renameSync(box.path('rankd.yaml'), box.path('real.yaml'));
      symlinkSync('real.yaml', box.path('rankd.yaml'));
      chownSync(box.path('real.yaml'), other, 0);
    }
  });

  test('fails with no_permission if this user cannot read it', () => {
    chmodSync(box.path('.'), 0o755);
    chmodSync(box.write('rankd.yaml', ''), 0);
    expect(withoutPrivileges(() => box.failure().code)).toBe('no_permission');
  });

  test('is not searched for in a folder that this user cannot enter', () => {
    chmodSync(box.path('.'), 0o755);
    box.write('home/.config/rankd/rankd.yaml', 'server: {port: 1}');
    chmodSync(box.path('home'), 0);
    expect(withoutPrivileges(() => box.load().config.server.port)).toBe(7265);
    chmodSync(box.path('home'), 0o755);
  });

  test.each([
    ['is empty', ''],
    ['is all comments', '# server:\n#   port: 1\n'],
    ['is a document without content', '---\n'],
    ['has sections without settings', 'server:\npolicy:\n  breaker:\n    # enabled: false\n'],
  ])('sets nothing if it %s', (_, text) => {
    box.write('rankd.yaml', text);
    expect(box.load().config).toEqual(new Sandbox().load().config);
  });

  test('may have a byte order mark, CRLF line ends, anchors and hexadecimal numbers', () => {
    box.write(
      'rankd.yaml',
      '\uFEFFserver:\r\n  port: 0x50\r\npolicy:\r\n  locked_roles: &r [7]\r\n  protected_roles: *r\r\n',
    );
    const { config, origins } = box.load();
    expect(config.server.port).toBe(80);
    expect(config.policy.protectedRoles).toEqual([7]);
    expect(origins.get('server.port')?.at).toBe('rankd.yaml:2:9');
  });

  test('has paths relative to its folder; those of flags and variables are relative to the current folder', () => {
    box.write('etc/rankd.yaml', 'platform: {group_file: group.yaml}');
    const groupFile = (sources = {}) => {
      const { platform } = box.load({ configFile: 'etc/rankd.yaml', ...sources }).config;
      return platform.kind === 'simulated' ? platform.groupFile : undefined;
    };
    expect(groupFile()).toBe(box.path('etc/group.yaml'));
    expect(groupFile({ env: { RANKD_PLATFORM_GROUP_FILE: 'group.yaml' } })).toBe(box.path('group.yaml'));
    expect(groupFile({ flags: { 'platform.group_file': '/abs/group.yaml' } })).toBe('/abs/group.yaml');
  });
});

/** Runs `work` as an ordinary user, because root can read every file. */
function withoutPrivileges<T>(work: () => T): T {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(65_534);
  try {
    return work();
  } finally {
    process.seteuid?.(0);
  }
}
