import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { settings } from '../../src/config/settings.ts';
import { Sandbox } from './sandbox.ts';

let box: Sandbox;
beforeEach(() => {
  box = new Sandbox();
});
afterEach(() => box[Symbol.dispose]());

test('every problem in the file, the environment and the flags is reported at once, with its position', () => {
  const text = [
    'server:',
    '  prot: 7265',
    '  deadline: 20',
    'group:',
    '  ladder: [1, -10, 20]',
    'polcy:',
    '  max_rank: 3',
    'platform:',
    '  kind: open-cloud',
    'policy:',
    '  max_rank: 255',
    '  breaker: [on]',
    '  max_rank: 254',
  ].join('\n');
  const env = { RANKD_LIMITS_VERIFY: 'lots', RANKD_LOG_LEVL: 'info' };
  expect(box.complaints(text, { env, flags: { 'server.port': '70000' } })).toEqual([
    'The configuration has 10 problems:',
    'rankd.yaml:2:3 server.prot: unknown setting; did you mean server.port?',
    'rankd.yaml:3:13 server.deadline: is 20; expected a duration from 1s to 5m, such as 20s',
    'rankd.yaml:5:15 group.ladder[1]: is -10; expected a rank, a role id, or a role name of at most 100 characters',
    'rankd.yaml:6:1 polcy: unknown setting; did you mean policy?',
    'rankd.yaml:12:12 policy.breaker: is a list; expected a mapping of settings',
    'rankd.yaml:13:3 policy.max_rank: is set twice, here and on line 11',
    'RANKD_LOG_LEVL: matches no setting; did you mean RANKD_LOG_LEVEL?',
    '--port: is 70000; expected a whole number from 0 to 65535',
    'RANKD_LIMITS_VERIFY: is "lots"; expected a whole number from 0 to 1000000',
    'rankd.yaml:9:9 group.id: missing; platform.kind open-cloud requires the id of your group',
  ]);
  expect(box.failure().hint).toBe('correct the listed problems, then try again');
});

test('the message names the source that all problems have in common', () => {
  const flagFailure = box.failure({ flags: { 'server.port': 'x', 'server.host': '-' } });
  expect(flagFailure).toMatchObject({
    code: 'usage',
    message: expect.stringMatching(/^The command line has 2 problems:/),
  });
  expect(box.complaints('server: { port: x, host: "-" }')[0]).toBe('rankd.yaml has 2 problems:');
});

test('a secret in a section that has none, or only a public key, is not mistaken for the Roblox key', () => {
  expect(box.complaints('discord: { publickey: x }')).toEqual([
    'rankd.yaml:1:12 discord.publickey: unknown setting; did you mean discord.public_key?',
  ]);
  expect(box.complaints('discord: { token: x }')[0]).toMatch(/a secret never goes here: `rankd discord setup` asks/);
  expect(box.complaints('server: { tls_key: x }')).toEqual(['rankd.yaml:1:11 server.tls_key: unknown setting']);
});

test('a variable for a setting that only the file can set is refused with that reason', () => {
  const { message } = box.failure({ env: { RANKD_WEBHOOKS_TARGETS: '[]' } });
  expect(message).toBe(
    'RANKD_WEBHOOKS_TARGETS: no variable can set webhooks.targets; set it in the configuration file',
  );
});

test('a Windows path in double quotes is refused with the fix', () => {
  expect(box.complaints('platform: { api_key_file: "C:\\keys\\roblox.key" }')[0]).toMatch(
    /backslash.*; use single quotes$/,
  );
});

test('a single problem is reported in a single line, and a missing key file only if nothing else is wrong', () => {
  expect(box.complaints('port: 80')).toEqual([
    'rankd.yaml:1:1 port: unknown setting; did you mean server.port or metrics.port or dashboard.port?',
  ]);
  expect(box.failure().hint).toBe('correct this, then try again');
  expect(box.complaints('group: { id: 5 }\nserver: { port: abc }\n')).toEqual([
    expect.stringContaining('server.port: is "abc"'),
  ]);
  expect(box.complaints('group: { id: 5 }')).toEqual([expect.stringContaining('platform.api_key_file: missing')]);
});

describe('a very long file', () => {
  test.each([
    ['unknown names', (n: number) => `nope${n}: 1`, 'nope1: unknown setting'],
    ['the same section', () => 'log: {level: info}', 'log: is set twice, here and on line 1'],
    ['tags', (n: number) => `nope${n}: !x 1`, 'a tag (!name), which rankd does not support'],
  ])('of %s is refused at once, with the first 20 problems and the number of the others', (_, line, text) => {
    const lines = Array.from({ length: 5_000 }, (_, n) => line(n)).join('\n');
    const [summary, ...listed] = box.complaints(lines);
    expect(summary).toMatch(/^rankd\.yaml has (5000|4999) problems:$/);
    expect(listed).toHaveLength(21);
    expect(listed[1]).toContain(text);
    expect(listed.at(-1)).toMatch(/^and 49(80|79) more$/);
  });

  test('of more than a megabyte is not parsed', () => {
    expect(box.complaints(`${'# nothing\n'.repeat(100_000)}#`)).toEqual([
      'rankd.yaml is larger than 1000000 bytes, the maximum that rankd reads.',
    ]);
  });

  test('of declared keys is read at once', () => {
    const key = (n: number) => `  - { name: game-${n}, hash: ${String(n).padStart(64, 'a')}, whitelist: [${n + 1}] }`;
    box.write('rankd.yaml', `keys:\n${Array.from({ length: 8_000 }, (_, n) => key(n)).join('\n')}\n`);
    const { keys } = box.load().config;
    expect([keys.length, keys[7_999]?.at.hash]).toEqual([8_000, 'rankd.yaml:8001:30']);
  });
});

describe('invalid or unsupported YAML is refused with its position', () => {
  test.each([
    ['a tab as indent', 'server:\n\tport: 80', 'rankd.yaml:2:1: invalid YAML: indented with a tab; use spaces'],
    ['an open bracket', 'group:\n  ladder: [1, 2', /^rankd\.yaml:2:16: invalid YAML: .* a bracket above is still open/],
    [
      'an entry indented more than the one above it',
      'group:\n id: 5\n   ladder: [1]',
      'rankd.yaml:2:6: invalid YAML: a line below this value is indented too far, or a second name: is on the same line',
    ],
    ['two names on a line', 'server: port: 7265', /^rankd\.yaml:1:9: .* is on the same line/],
    ['a name without a colon', 'server\nlog: {level: info}', /^rankd\.yaml:1:1: .* colon is missing/],
    ['a second document', 'log: {}\n---\nlog: {}', /^rankd\.yaml:2:\d: a second document/],
    ['a list', '- a', /^rankd\.yaml:1:1: expected a mapping of settings/],
    ['a bare word', 'port', /^rankd\.yaml:1:1: expected a mapping of settings/],
    ['a repeated name', 'log: {}\nlog: {}', 'rankd.yaml:2:1 log: is set twice, here and on line 1'],
    ['a tag', 'log: {level: !env LEVEL}', /^rankd\.yaml:1:14: a tag/],
    [
      'an alias without its anchor',
      'policy:\n  max_rank: *highest',
      'rankd.yaml:2:13: an alias (*name) without an anchor (&name) above it',
    ],
    ['aliases that multiply', multiplyingAliases(), 'rankd.yaml:1:1: its aliases (*name) expand to too much data'],
    ['a merge key', 'log: &l {level: info}\nserver: {<<: *l}', 'rankd.yaml:2:10 server.<<: unknown setting'],
    ['a key that is a list', '? [a]\n: b', 'rankd.yaml:1:1 (not a valid name): unknown setting'],
    ['__proto__', 'server: {__proto__: {port: 1}}', /^rankd\.yaml:1:10 server\.__proto__: unknown setting/],
    ['a mistake after a byte order mark', '\uFEFFport: 80', /^rankd\.yaml:1:1 port: /],
  ])('%s', (_, text, complaint) => {
    const lines = box.complaints(text);
    expect(lines).toEqual([typeof complaint === 'string' ? complaint : expect.stringMatching(complaint)]);
  });

  test('Latin-1', () => {
    writeFileSync(box.path('rankd.yaml'), Buffer.from('policy: {locked_roles: [Café]}\n', 'latin1'));
    expect(box.failure().message).toBe(
      'rankd.yaml is saved in an encoding other than UTF-8, such as Latin-1; rankd reads UTF-8.',
    );
  });

  test.each(['utf16le', 'utf-16be'])('%s', (encoding) => {
    const text = Buffer.from('\uFEFFgroup: {id: 5}\n', 'utf16le');
    writeFileSync(box.path('rankd.yaml'), encoding === 'utf16le' ? text : text.swap16());
    expect(box.failure().message).toBe('rankd.yaml is saved as UTF-16; rankd reads UTF-8.');
    expect(box.failure().hint).toContain('UTF-8');
  });

  function multiplyingAliases(): string {
    const levels = Array.from({ length: 9 }, (_, n) => `  a${n}: &a${n} [${`*a${n - 1},`.repeat(9).slice(0, -1)}]`);
    levels[0] = '  a0: &a0 [1,1,1,1,1,1,1,1,1]';
    return `policy:\n${levels.join('\n')}`;
  }
});

describe('an invalid value is refused at its position, with the value and what was expected', () => {
  test.each([
    ...['0', '-5', '1.5', '9007199254740992'].map((value) => [
      `group: {id: ${value}}`,
      `group.id: is ${value}; expected a whole number above 0`,
    ]),
    ['group: {id: .nan}', 'group.id: is NaN; expected a whole number above 0'],
    ['group: {id: "5"}', 'group.id: is "5"; expected a whole number above 0, without quotes'],
    ['server: {port: "7265"}', 'server.port: is "7265"; expected a whole number from 0 to 65535, without quotes'],
    ['policy: {max_rank: 0}', 'policy.max_rank: is 0; expected a whole number from 1 to 254, or a role name'],
    ['policy: {max_rank: "0"}', 'policy.max_rank: is "0"; expected a whole number from 1 to 254, or a role name'],
    ['server: {port: -1}', 'server.port: is -1; expected a whole number from 0 to 65535'],
    ['server: {port: }', 'server.port: has no value; expected a whole number from 0 to 65535'],
    ['policy: {breaker: {demotions: 0}}', 'policy.breaker.demotions: is 0; expected a whole number from 1 to 1000000'],
    ['group: {ladder: []}', 'group.ladder: is an empty list; expected at least one role'],
    ['group: {ladder: [5, 5]}', 'group.ladder: is a list; expected a list without duplicates; 5 is in it twice'],
    ['group: {ladder: ["10", 10]}', 'group.ladder: is a list; expected a list without duplicates; 10 is in it twice'],
    ['group: {ladder: 5}', 'group.ladder: is 5; expected a list of ranks, role ids or role names'],
    [
      'group: {ladder: [0]}',
      'group.ladder[0]: is 0; expected a rank, a role id, or a role name of at most 100 characters',
    ],
    ['platform: {kind: cloud}', 'platform.kind: is "cloud"; expected one of open-cloud, simulated'],
    ['policy: {self_rank: yes}', 'policy.self_rank: is "yes"; expected one of allow, deny'],
    ['policy: {breaker: {enabled: yes}}', 'policy.breaker.enabled: is "yes"; expected true or false'],
    ...['', '127.0.0.1:80'].map((host) => [
      `server: {host: "${host}"}`,
      `server.host: is "${host}"; expected an IP address or host name, without a port`,
    ]),
    ...['500ms', '0s', '6m'].map((time) => [
      `server: {deadline: ${time}}`,
      `server.deadline: is "${time}"; expected a duration from 1s to 5m, such as 20s`,
    ]),
    [
      'policy: {cooldown: 5}',
      'policy.cooldown: is 5; expected a duration from 0s to 30d, such as 30s, or a list of {from: RANK, for: DURATION}',
    ],
    [
      'policy: {cooldown: [{from: 0, for: 1d}]}',
      'policy.cooldown[0].from: is 0; expected a whole number from 1 to 255',
    ],
    ['policy: {cooldown: [{from: 20, for: 1d, until: 5}]}', 'policy.cooldown[0].until: unknown setting'],
    ...[
      ['{from: 20}', '[0].for: has no value; expected a duration from 0s to 30d, such as 30s'],
      ['{from: Officer, for: 1d}', '[0].from: is "Officer"; expected a whole number from 1 to 255'],
      ['7d', '[0]: is "7d"; expected {from: RANK, for: DURATION}'],
    ].map(([entry, problem]) => [`policy: {cooldown: [${entry}]}`, `policy.cooldown${problem}`]),
    [
      'policy: {privileged_roles: [5, {}]}',
      'policy.privileged_roles[1]: is a mapping; expected a rank, a role id, or a role name of at most 100 characters',
    ],
    [
      'policy: {cooldown: [{from: 20, for: 1d}, {from: 20, for: 7d}]}',
      'policy.cooldown[1].from: is 20; expected a value other than that of policy.cooldown[0].from',
    ],
    [
      'policy: {min_rank: 50, max_rank: 20}',
      'policy.min_rank: is 50; expected a rank up to policy.max_rank, which is 20',
    ],
    ['log: info', 'log: is "info"; expected a mapping of settings'],
  ])('%s', (text, complaint) => {
    const lines = box.complaints(`${text}`, { env: { RANKD_PLATFORM_API_KEY: 'k' } });
    expect(lines).toEqual([expect.stringMatching(/^rankd\.yaml:1:\d+ /)]);
    expect(lines[0]?.replace(/^\S+ /, '')).toBe(complaint);
  });

  test('a section that is not a mapping, even if a variable sets one of its settings', () => {
    expect(box.complaints('log: info', { env: { RANKD_LOG_LEVEL: 'warn' } })).toEqual([
      'rankd.yaml:1:6 log: is "info"; expected a mapping of settings',
    ]);
  });

  test('an item of a list in a variable', () => {
    const env = { RANKD_POLICY_PROTECTED_MEMBERS: '1,two,3' };
    expect(box.failure({ env }).message).toBe(
      'RANKD_POLICY_PROTECTED_MEMBERS: is "two"; expected a whole number above 0',
    );
  });

  const wrong = [
    ...[true, 1.5, -1, 0, 1e21, '', ' ', '1e3', '0x10', '-5', '"', 'x'.repeat(101), 'rk_live_x', { a: 1 }, [], null],
    ...[[null], [true], [{}], [[]], [1.5], [''], ['x'.repeat(41)], [{ name: 1, hash: {}, url_file: [] }], '200'],
    ['20'],
  ];
  const libraryWords =
    /invalid|pattern|regular|zod|\/\^|undefined|NaN|too (big|small)|expected (int|string|number|array|object|boolean|map)\b/i;

  test.each(settings.map(({ path }) => path))(
    '%s: every value is accepted, or refused without words from a library',
    (path) => {
      const messages = wrong.flatMap((value) => {
        const text = path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
        box.write('rankd.yaml', JSON.stringify(text));
        try {
          box.load();
          return [];
        } catch (error) {
          return (error as Error).message.split('\n').map((line) => [JSON.stringify(value), line] as const);
        }
      });
      expect(messages.length).toBeGreaterThan(5);
      for (const [value, line] of messages) {
        expect(line, value).not.toMatch(libraryWords);
        expect(line, value).toMatch(/^rankd\.yaml(:1:\d+ [\w.[\]]+: | has )|^The configuration|^and \d+ more/);
      }
    },
  );
});

test('a role number in quotes is a number, in the file and in a variable', () => {
  const policy = 'locked_roles: ["200", Officer]\n  suspension: {role: "5"}\n  privileged_roles: ["100"]';
  box.write('rankd.yaml', `group: {ladder: ["10", 20]}\npolicy:\n  ${policy}`);
  const { config } = box.load();
  expect(config.group.ladder).toEqual([10, 20]);
  expect(config.policy).toMatchObject({ lockedRoles: [200, 'Officer'], privilegedRoles: [100] });
  box.write('rankd.yaml', '');
  for (const list of ['20, Officer', '[20, Officer]', '["20", "Officer"]', "'20','Officer'"]) {
    const env = { RANKD_POLICY_LOCKED_ROLES: list };
    expect(box.load({ env }).config.policy.lockedRoles).toEqual([20, 'Officer']);
  }
});

test('the range of a policy or a key may be a single rank', () => {
  const key = `{ name: main, hash: ${'a'.repeat(64)}, min_rank: 20, max_rank: 20 }`;
  box.write('rankd.yaml', `policy: {min_rank: 20, max_rank: 20}\nkeys: [${key}]`);
  expect(box.load().config).toMatchObject({
    policy: { minRank: 20, maxRank: 20 },
    keys: [{ rules: { minRank: 20, maxRank: 20 } }],
  });
});

describe('addresses', () => {
  test.each([
    ['https://proxy.example/roblox/', 'https://proxy.example/roblox'],
    ['https://apis.roblox.com', 'https://apis.roblox.com'],
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['http://127.9.9.9', 'http://127.9.9.9'],
    ['http://[::1]:8080/', 'http://[::1]:8080'],
    ['http://localhost:8080//', 'http://localhost:8080'],
  ])('%s is accepted', (url, expected) => {
    const env = { RANKD_GROUP_ID: '1', RANKD_PLATFORM_API_KEY: 'k', RANKD_PLATFORM_BASE_URL: url };
    expect(box.load({ env }).config.platform).toMatchObject({ baseUrl: expected });
  });

  test.each([
    'http://apis.roblox.com',
    'http://127.0.0.1.example.com',
    'http://127.example',
    'http://localhost.example.com',
    'http://0.0.0.0',
    'ftp://127.0.0.1',
    'https://user:pa55word@apis.roblox.com',
    'https://u:pa55word@a.b',
    'https://apis.roblox.com?key=pa55word',
    'https://apis.roblox.com/#pa55word',
    'apis.roblox.com',
    '//apis.roblox.com',
  ])('%s is refused, and not repeated', (url) => {
    for (const name of ['RANKD_PLATFORM_BASE_URL', 'RANKD_SERVER_PUBLIC_URL']) {
      const { message } = box.failure({ env: { [name]: url } });
      expect(message).toContain(
        'expected an https address (or http on loopback) without user, password, query or fragment',
      );
      expect(message).not.toContain('pa55word');
    }
  });

  test.each([
    'http://rankd-admin.example.com',
    'https://rankd-admin.example.com/rankd',
    'https://a:b@example.com',
    'example.com',
  ])('%s is refused as the address of the dashboard', (url) => {
    expect(box.complaints(`dashboard:\n  url: ${url}`)).toEqual([
      expect.stringContaining('expected an https address (or http on loopback) without user, password, path'),
    ]);
  });

  test.each(['0.0.0.0', '192.168.1.5', '::', 'rankd.example.com'])(
    'the dashboard is plain http: on %s it needs dashboard.url, and the error offers a tunnel or a proxy',
    (host) => {
      expect(box.complaints(`dashboard:\n  host: '${host}'`)).toEqual([
        expect.stringMatching(
          /^rankd\.yaml:2:9 dashboard\.host: is ".*"; expected a loopback address.*ssh -L 7266:127\.0\.0\.1:7266.*dashboard\.url/,
        ),
      ]);
      for (const url of ['https://rankd-admin.example.com', 'http://127.0.0.1:7266']) {
        box.write('rankd.yaml', `dashboard:\n  host: '${host}'\n  url: ${url}`);
        expect(box.load().config.dashboard).toMatchObject({ host, url });
      }
    },
  );
});

describe('two listeners of the daemon', () => {
  const pageUrl = 'url: "https://page.example.com"';
  test.each([
    ['server: {port: 9300}\ndashboard: {port: 9300}', 'dashboard.port', 'the server (server.port)'],
    [`server: {port: 7266}\ndashboard: {${pageUrl}}`, 'dashboard.port', 'the server (server.port)'],
    ['server: {host: localhost, port: 9300}\ndashboard: {port: 9300}', 'dashboard.port', 'the server (server.port)'],
    ['metrics: {enabled: true, port: 9300}\ndashboard: {port: 9300}', 'dashboard.port', 'the metrics (metrics.port)'],
    ['metrics: {enabled: true, port: 7265}', 'metrics.port', 'the server (server.port)'],
    ['server: {port: 9265}\nmetrics: {enabled: true}', 'metrics.port', 'the server (server.port)'],
    [
      'server: {host: 0.0.0.0}\nmetrics: {enabled: true, port: 7265, host: 127.0.0.2}',
      'metrics.port',
      'the server (server.port)',
    ],
  ])('cannot have the same port: %s', (text, setting, other) => {
    expect(box.complaints(text)).toEqual([
      expect.stringMatching(
        new RegExp(`^rankd\\.yaml:\\d:\\d+ ${setting}: is \\d+; expected a port other than that of`),
      ),
    ]);
    expect(box.failure().message).toContain(other);
  });

  test.each([
    ['the dashboard has its default port, and so may use the next free one', 'server: {port: 7266}'],
    ['metrics are off', 'metrics: {port: 7265}'],
    ['they have different addresses', 'metrics: {enabled: true, port: 7265, host: 127.0.0.2}'],
    ['each takes any free port', 'server: {port: 0}\nmetrics: {enabled: true, port: 0}'],
  ])('may name the same port if %s', (_, text) => {
    box.write('rankd.yaml', text);
    expect(() => box.load()).not.toThrow();
  });
});

describe('variables that start with RANKD_', () => {
  test.each([
    ['RANKD_PORT', 'RANKD_SERVER_PORT or RANKD_METRICS_PORT or RANKD_DASHBOARD_PORT'],
    ['RANKD_API_KEY', 'RANKD_PLATFORM_API_KEY'],
    ['RANKD_POLICY_MAXRANK', 'RANKD_POLICY_MAX_RANK'],
    ['RANKD_DATADIR', 'RANKD_DATA_DIR'],
  ])('are refused if they match no setting: %s', (name, meant) => {
    expect(box.failure({ env: { [name]: '80' } }).message).toBe(`${name}: matches no setting; did you mean ${meant}?`);
  });

  test('are ignored if they come from service links of Kubernetes', () => {
    const env = {
      RANKD_SERVICE_HOST: '10.0.0.1',
      RANKD_SERVICE_PORT: '7265',
      RANKD_SERVICE_PORT_HTTP: '7265',
      RANKD_PORT: 'tcp://10.0.0.1:7265',
      RANKD_PORT_7265_TCP: 'tcp://10.0.0.1:7265',
      RANKD_PORT_7265_TCP_ADDR: '10.0.0.1',
    };
    expect(box.load({ env }).config.server.port).toBe(7265);
  });

  test('may name the data directory and the configuration file', () => {
    const path = box.write('other.yaml', '');
    expect(box.load({ env: { RANKD_DATA_DIR: '/data', RANKD_CONFIG: 'other.yaml' } }).file).toBe(path);
  });
});

test("the erasure webhook's secret is not a setting; its file must exist and not be empty; a trailing line break is ignored", () => {
  box.write('empty.secret', '\n');
  const refused = (text: string) => box.complaints(`erasure: {${text}}`).join('\n');
  expect(refused('secret: geheim')).toMatch(
    /a secret never goes here: .* erasure\.secret_file or set RANKD_ERASURE_SECRET/,
  );
  expect(refused('secret_file: none.secret')).toMatch(/1:24 erasure\.secret_file: .*none\.secret does not exist$/);
  expect(refused('secret_file: empty.secret')).toMatch(/is empty; put the secret into it$/);
  box.write('rankd.yaml', 'erasure: {secret_file: empty.secret}');
  const { erasure } = box.load({ env: { RANKD_ERASURE_SECRET: 'geheimgeheim1234\n' } }).config;
  expect([erasure.secret?.reveal(), JSON.stringify(erasure)]).toEqual(['geheimgeheim1234', '{"secret":"[redacted]"}']);
});

test('a secret that is in quotes or can be guessed is refused, and no problem repeats it', () => {
  const url = 'postgres://ann@db.example.com/rankd';
  const refused = (env: Record<string, string>) => {
    const { message } = box.failure({ env });
    expect(message).not.toContain('geheim');
    return message;
  };
  expect(refused({ RANKD_ERASURE_SECRET: '"geheimgeheim1234"' })).toMatch(
    /: RANKD_ERASURE_SECRET is in quotes; remove them$/,
  );
  expect(refused({ RANKD_STORE_URL: url, RANKD_STORE_PASSWORD: "'geheim'" })).toMatch(
    /: RANKD_STORE_PASSWORD is in quotes; remove them$/,
  );
  box.write('quoted.secret', '"geheimgeheim1234"\n');
  expect(box.complaints('erasure: {secret_file: quoted.secret}')).toEqual([
    expect.stringMatching(/1:24 erasure\.secret_file: the text in \S+quoted\.secret is in quotes; remove them$/),
  ]);
  expect(refused({ RANKD_ERASURE_SECRET: 'geheim' })).toContain('RANKD_ERASURE_SECRET has fewer than 16 characters');
});

test('an endless file is refused as a secret', () => {
  expect(box.complaints('erasure: {secret_file: /dev/zero}')).toEqual([
    'rankd.yaml:1:24 erasure.secret_file: /dev/zero has more than 1000000 bytes, so it is probably the wrong file',
  ]);
});

test('a folder for audit.head_file is refused at its position', () => {
  expect(box.complaints('audit: {head_file: /}')).toEqual([
    'rankd.yaml:1:20 audit.head_file: is a folder; expected the path of a file in it',
  ]);
});
