import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { settings } from '../../src/config/settings.ts';
import { Sandbox } from './sandbox.ts';

let box: Sandbox;
beforeEach(() => {
  box = new Sandbox();
});
afterEach(() => box[Symbol.dispose]());

test('every problem of the file, the environment and the flags is told at once, with its place', () => {
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
    'rankd.yaml has 10 problems:',
    'rankd.yaml:2:3 server.prot: unknown setting; did you mean server.port?',
    'rankd.yaml:3:13 server.deadline: is 20; expected a duration from 1s to 5m, such as 20s',
    'rankd.yaml:5:15 group.ladder[1]: is -10; expected a rank, a role id, or the name of a role of at most 100 characters',
    'rankd.yaml:6:1 polcy: unknown setting; did you mean policy?',
    'rankd.yaml:12:12 policy.breaker: is a list; expected a mapping of settings',
    'rankd.yaml:13:3 policy.max_rank: is given twice, here and in line 11',
    'RANKD_LOG_LEVL: matches no setting; did you mean RANKD_LOG_LEVEL?',
    '--port: is 70000; expected a whole number from 0 to 65535',
    'RANKD_LIMITS_VERIFY: is "lots"; expected a whole number from 0 to 1000000',
    'rankd.yaml:9:9 group.id: missing; platform.kind open-cloud needs the id of the group to rank in',
  ]);
  expect(box.failure().hint).toContain('run the command again');
});

test('a byte order mark does not shift positions', () => {
  expect(box.complaints('\uFEFFport: 80')[0]).toMatch(/^rankd\.yaml:1:1 port: /);
});

test.each(['0.0.0.0', '192.168.1.5', '::', 'rankd.example.com'])(
  'the page is plain http: on %s it needs an address that browsers reach it at, and the problem says which ways there are',
  (host) => {
    const [problem = '', ...others] = box.complaints(`dashboard:\n  host: '${host}'`);
    expect(others).toEqual([]);
    expect(problem).toMatch(/^rankd\.yaml:2:9 dashboard\.host: is ".*"; expected an address of this machine alone/);
    expect(problem).toContain('ssh -L 7266:127.0.0.1:7266');
    expect(problem).toContain('dashboard.url');
    for (const url of ['https://rankd-admin.example.com', 'http://127.0.0.1:7266']) {
      box.write('rankd.yaml', `dashboard:\n  host: '${host}'\n  url: ${url}`);
      expect(box.load().config.dashboard).toMatchObject({ host, url });
    }
  },
);

test.each([
  'http://rankd-admin.example.com',
  'https://rankd-admin.example.com/rankd',
  'https://a:b@example.com',
  'example.com',
])('the page is at no address such as %s', (url) => {
  expect(box.complaints(`dashboard:\n  url: ${url}`)).toEqual([
    expect.stringContaining('expected an https address (or http on loopback) without user, password, path'),
  ]);
});

test('a single problem is a single line', () => {
  expect(box.complaints('port: 80')).toEqual([
    'rankd.yaml:1:1 port: unknown setting; did you mean server.port or metrics.port or dashboard.port?',
  ]);
});

describe('a file that is far too long', () => {
  test.each([
    ['names that are no settings', (n: number) => `nope${n}: 1`, 'nope1: unknown setting'],
    ['one section again and again', () => 'log: {level: info}', 'log: is given twice, here and in line 1'],
    ['tags', (n: number) => `nope${n}: !x 1`, 'has a tag (!name); tags mean nothing here'],
  ])('of %s is refused without a wait, with the first 20 problems and how many more', (_, line, text) => {
    const lines = Array.from({ length: 5_000 }, (_, n) => line(n)).join('\n');
    const [summary, ...listed] = box.complaints(lines);
    expect(summary).toMatch(/^rankd\.yaml has (5000|4999) problems:$/);
    expect(listed).toHaveLength(21);
    expect(listed[1]).toContain(text);
    expect(listed.at(-1)).toMatch(/^and 49(80|79) more$/);
  });

  test('is not read at all above a megabyte', () => {
    expect(box.complaints(`${'# nothing\n'.repeat(100_000)}#`)).toEqual([
      'rankd.yaml has 1000001 bytes; rankd reads at most 1000000.',
    ]);
  });

  test('for its declared keys alone is read without a wait', () => {
    const key = (n: number) => `  - { name: game-${n}, hash: ${String(n).padStart(64, 'a')}, whitelist: [${n + 1}] }`;
    box.write('rankd.yaml', `keys:\n${Array.from({ length: 8_000 }, (_, n) => key(n)).join('\n')}\n`);
    const { keys } = box.load().config;
    expect([keys.length, keys[7_999]?.at.hash]).toEqual([8_000, 'rankd.yaml:8001:30']);
  });
});

describe('YAML that does not hold is refused with its place', () => {
  test.each([
    ['a tab as indent', 'server:\n\tport: 80', 'rankd.yaml:2:1: no valid YAML: indented with a tab; use spaces'],
    [
      'an open bracket',
      'group:\n  ladder: [1, 2',
      /^rankd\.yaml:2:16: no valid YAML: .* a bracket before is still open/,
    ],
    [
      'a duplicate key',
      'log: {level: info}\nlog: {level: warn}',
      'rankd.yaml:2:1 log: is given twice, here and in line 1',
    ],
    [
      'an entry deeper than those before it',
      'group:\n id: 5\n   ladder: [1]',
      'rankd.yaml:2:6: no valid YAML: after this value, a line below is indented too far, or a second name: stands on the same line',
    ],
    ['two names on a line', 'server: port: 7265', /^rankd\.yaml:1:9: .* stands on the same line/],
    ['a name without a colon', 'server\nlog: {level: info}', /^rankd\.yaml:1:1: .* colon is missing/],
    ['a second document', 'log: {}\n---\nlog: {}', /^rankd\.yaml:2:\d: a second document/],
    ['a list', '- a', /^rankd\.yaml:1:1: expected a mapping of settings/],
    ['a bare word', 'port', /^rankd\.yaml:1:1: expected a mapping of settings/],
    ['a tag', 'log: {level: !env LEVEL}', /^rankd\.yaml:1:14: has a tag/],
    ['an alias to nothing', 'policy: {locked_roles: *gone}', /^rankd\.yaml:1:\d+: /],
    ['a merge key', 'log: &l {level: info}\nserver: {<<: *l}', 'rankd.yaml:2:10 server.<<: unknown setting'],
    ['a key that is a list', '? [a]\n: b', 'rankd.yaml:1:1 (something that is no name): unknown setting'],
    ['__proto__', 'server: {__proto__: {port: 1}}', /^rankd\.yaml:1:10 server\.__proto__: unknown setting/],
  ])('%s', (_, text, complaint) => {
    const [line, ...more] = box.complaints(text);
    expect(more).toEqual([]);
    if (typeof complaint === 'string') expect(line).toBe(complaint);
    else expect(line).toMatch(complaint);
  });

  test.each(['utf16le', 'utf-16be'])('%s', (encoding) => {
    const text = Buffer.from('\uFEFFgroup: {id: 5}\n', 'utf16le');
    writeFileSync(box.path('rankd.yaml'), encoding === 'utf16le' ? text : text.swap16());
    expect(box.failure().message).toBe('rankd.yaml is saved as UTF-16; rankd reads UTF-8.');
    expect(box.failure().hint).toContain('UTF-8');
  });

  test('aliases that multiply', () => {
    const levels = Array.from({ length: 9 }, (_, n) => `  a${n}: &a${n} [${`*a${n - 1},`.repeat(9).slice(0, -1)}]`);
    levels[0] = '  a0: &a0 [1,1,1,1,1,1,1,1,1]';
    expect(box.complaints(`policy:\n${levels.join('\n')}`)).toEqual([
      'rankd.yaml:1:1: its aliases (*name) stand for too much',
    ]);
  });

  test('an alias without its anchor', () => {
    expect(box.complaints('policy:\n  max_rank: *highest\n')).toEqual([
      'rankd.yaml:2:13: an alias (*name) for which nothing above has the anchor (&name)',
    ]);
  });

  test('a key file that is missing is no news while something else is wrong', () => {
    expect(box.complaints('group: { id: 5 }\nserver: { port: abc }\n')).toEqual([
      expect.stringContaining('server.port: is "abc"'),
    ]);
    expect(box.complaints('group: { id: 5 }')).toEqual([expect.stringContaining('platform.api_key_file: missing')]);
  });
});

describe('a value that does not fit is refused', () => {
  const ids = 'a whole number above 0';
  test.each([
    ['group: {id: 0}', `group.id: is 0; expected ${ids}`],
    ['group: {id: -5}', `group.id: is -5; expected ${ids}`],
    ['group: {id: 1.5}', `group.id: is 1.5; expected ${ids}`],
    ['group: {id: .nan}', `group.id: is NaN; expected ${ids}`],
    ['group: {id: 9007199254740992}', `group.id: is 9007199254740992; expected ${ids}`],
    ['group: {id: "5"}', `group.id: is "5"; expected ${ids}, without quotes`],
    ['group: {ladder: []}', 'group.ladder: is a list; expected at least one role'],
    ['group: {ladder: [5, 5]}', 'group.ladder: is a list; expected a list that names nothing twice; it names 5 twice'],
    ['group: {ladder: 5}', 'group.ladder: is 5; expected a list of ranks, role ids or names of roles'],
    [
      'group: {ladder: [0]}',
      'group.ladder[0]: is 0; expected a rank, a role id, or the name of a role of at most 100 characters',
    ],
    ['platform: {kind: cloud}', 'platform.kind: is "cloud"; expected one of open-cloud, simulated'],
    ['server: {port: -1}', 'server.port: is -1; expected a whole number from 0 to 65535'],
    ['server: {port: }', 'server.port: has no value; expected a whole number from 0 to 65535'],
    ['server: {host: ""}', 'server.host: is ""; expected an IP address or host name, without a port'],
    [
      'server: {host: "127.0.0.1:80"}',
      'server.host: is "127.0.0.1:80"; expected an IP address or host name, without a port',
    ],
    ['server: {deadline: 500ms}', 'server.deadline: is "500ms"; expected a duration from 1s to 5m, such as 20s'],
    ['server: {deadline: 0s}', 'server.deadline: is "0s"; expected a duration from 1s to 5m, such as 20s'],
    ['server: {deadline: 6m}', 'server.deadline: is "6m"; expected a duration from 1s to 5m, such as 20s'],
    ['policy: {max_rank: 0}', 'policy.max_rank: is 0; expected a whole number from 1 to 254, or the name of a role'],
    [
      'policy: {min_rank: 50, max_rank: 20}',
      'policy.min_rank: is 50; expected a rank up to policy.max_rank, which is 20',
    ],
    ['policy: {self_rank: yes}', 'policy.self_rank: is "yes"; expected one of allow, deny'],
    ['policy: {breaker: {enabled: yes}}', 'policy.breaker.enabled: is "yes"; expected true or false'],
    ['policy: {breaker: {demotions: 0}}', 'policy.breaker.demotions: is 0; expected a whole number from 1 to 1000000'],
    ['limits: {rank: -1}', 'limits.rank: is -1; expected a whole number from 0 to 1000000'],
    ['policy: {cooldown: 5}', 'policy.cooldown: is 5; expected a duration from 0s to 30d, such as 30s'],
    ['log: info', 'log: is "info"; expected a mapping of settings'],
  ])('%s', (text, complaint) => {
    const lines = box.complaints(text, { env: { RANKD_PLATFORM_API_KEY: 'k' } });
    expect(lines).toEqual([expect.stringMatching(/^rankd\.yaml:1:\d+ /)]);
    expect(lines[0]?.replace(/^\S+ /, '')).toBe(complaint);
  });

  test('a section that is none, also where a variable has a setting of it', () => {
    const env = { RANKD_LOG_LEVEL: 'warn' };
    expect(box.complaints('log: info', { env })).toEqual([
      'rankd.yaml:1:6 log: is "info"; expected a mapping of settings',
    ]);
  });

  test('a list in the environment whose entry is no number', () => {
    const env = { RANKD_POLICY_PROTECTED_MEMBERS: '1,two,3' };
    expect(box.failure({ env }).message).toBe(`RANKD_POLICY_PROTECTED_MEMBERS: is "two"; expected ${ids}`);
  });
});

describe('platform addresses', () => {
  const baseUrl = (url: string) => {
    const env = { RANKD_GROUP_ID: '1', RANKD_PLATFORM_API_KEY: 'k', RANKD_PLATFORM_BASE_URL: url };
    const { platform } = box.load({ env }).config;
    return platform.kind === 'open-cloud' ? platform.baseUrl : undefined;
  };

  test.each([
    ['https://proxy.example/roblox/', 'https://proxy.example/roblox'],
    ['https://apis.roblox.com', 'https://apis.roblox.com'],
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['http://127.9.9.9', 'http://127.9.9.9'],
    ['http://[::1]:8080/', 'http://[::1]:8080'],
    ['http://localhost:8080//', 'http://localhost:8080'],
  ])('%s is accepted', (url, kept) => expect(baseUrl(url)).toBe(kept));

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
});

describe('variables that start with RANKD_', () => {
  test.each([
    ['RANKD_PORT', 'RANKD_SERVER_PORT or RANKD_METRICS_PORT or RANKD_DASHBOARD_PORT'],
    ['RANKD_API_KEY', 'RANKD_PLATFORM_API_KEY'],
    ['RANKD_POLICY_MAXRANK', 'RANKD_POLICY_MAX_RANK'],
    ['RANKD_DATADIR', 'RANKD_DATA_DIR'],
  ])('and match no setting are refused: %s', (name, meant) => {
    expect(box.failure({ env: { [name]: '80' } }).message).toBe(`${name}: matches no setting; did you mean ${meant}?`);
  });

  test('of Kubernetes service links are left alone', () => {
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

  test('of the data directory and the configuration file are no settings', () => {
    box.write('other.yaml', '');
    expect(box.load({ env: { RANKD_DATA_DIR: '/data', RANKD_CONFIG: 'other.yaml' } }).file).toBe(
      box.path('other.yaml'),
    );
  });
});

test('a policy or a key can leave a single rank in reach', () => {
  const key = `{ name: main, hash: ${'a'.repeat(64)}, min_rank: 20, max_rank: 20 }`;
  box.write('rankd.yaml', `policy: {min_rank: 20, max_rank: 20}\nkeys: [${key}]`);
  expect(box.load().config).toMatchObject({
    policy: { minRank: 20, maxRank: 20 },
    keys: [{ rules: { minRank: 20, maxRank: 20 } }],
  });
});

test.each([
  ['server: {port: 9300}\ndashboard: {port: 9300}', 'dashboard.port', 'the server (server.port)'],
  ['server: {port: 7266}\ndashboard: {url: "https://page.example.com"}', 'dashboard.port', 'the server (server.port)'],
  ['server: {host: localhost, port: 9300}\ndashboard: {port: 9300}', 'dashboard.port', 'the server (server.port)'],
  ['metrics: {enabled: true, port: 9300}\ndashboard: {port: 9300}', 'dashboard.port', 'the metrics (metrics.port)'],
])('two listeners of the daemon on one port are refused: %s', (text, setting, other) => {
  box.write('rankd.yaml', text);
  expect(box.complaints(text)[0]).toMatch(`${setting}: is `);
  expect(box.complaints(text)[0]).toMatch(`expected another port than that of ${other}`);
});

test('a page on its default port lets the server have that port, and takes the next free one itself', () => {
  box.write('rankd.yaml', 'server: {port: 7266}');
  expect(box.load().config).toMatchObject({ server: { port: 7266 }, dashboard: { port: 7266 } });
});

test('a listener for metrics on the address of the server is refused, unless it is off or either port is any free one', () => {
  const complaint = 'metrics.port: is 7265; expected another port than that of the server (server.port)';
  expect(box.complaints('metrics: {enabled: true, port: 7265}')).toEqual([`rankd.yaml:1:32 ${complaint}`]);
  expect(box.failure({ env: { RANKD_SERVER_HOST: '0.0.0.0' } }).message).toContain('metrics.port: is 7265');
  expect(box.complaints('server: {port: 9265}\nmetrics: {enabled: true}')[0]).toContain('metrics.port: is 9265');
  for (const text of ['metrics: {port: 7265}', 'metrics: {enabled: true, port: 7265, host: 127.0.0.2}']) {
    box.write('rankd.yaml', text);
    expect(box.load().config.metrics.port).toBe(7265);
  }
  box.write('rankd.yaml', 'server: {port: 0}\nmetrics: {enabled: true, port: 0}');
  expect(box.load().config.metrics.port).toBe(0);
});

describe('whatever a setting holds', () => {
  const wrong = [
    ...[true, 1.5, -1, 0, 1e21, '', ' ', '1e3', '0x10', '-5', '"', 'x'.repeat(101), 'rk_live_x', { a: 1 }, [], null],
    ...[
      [null],
      [true],
      [{}],
      [[]],
      [1.5],
      [''],
      ['x'.repeat(41)],
      [{ name: 1, hash: {}, url_file: [] }],
      '200',
      ['20'],
    ],
  ];
  const librarysWords =
    /invalid|pattern|regular|zod|\/\^|undefined|NaN|too (big|small)|expected (int|string|number|array|object|boolean|map)\b/i;

  test.each(settings.map(({ path }) => path))(
    'in %s is accepted, or refused at its place in words of our own',
    (path) => {
      const said = wrong.flatMap((value) => {
        const text = path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
        box.write('rankd.yaml', JSON.stringify(text));
        try {
          box.load();
          return [];
        } catch (error) {
          return (error as Error).message.split('\n').map((line) => [JSON.stringify(value), line] as const);
        }
      });
      expect(said.length).toBeGreaterThan(5);
      for (const [value, line] of said) {
        expect(line, value).not.toMatch(librarysWords);
        expect(line, value).toMatch(/^rankd\.yaml(:1:\d+ [\w.[\]]+: | has )|^The configuration|^and \d+ more/);
      }
    },
  );

  test('role numbers in quotes are numbers, and a quoted number elsewhere is refused with the reason', () => {
    const policy = 'locked_roles: ["200", Officer]\n  suspension: {role: "5"}\n  privileged_roles: ["100"]';
    box.write('rankd.yaml', `group: {ladder: ["10", 20]}\npolicy:\n  ${policy}`);
    const { config } = box.load();
    expect(config.group.ladder).toEqual([10, 20]);
    expect(config.policy).toMatchObject({ lockedRoles: [200, 'Officer'], privilegedRoles: [100] });
    expect(box.complaints('group: {ladder: ["10", 10]}')[0]).toContain('it names 10 twice');
    expect(box.complaints('server: {port: "7265"}')).toEqual([
      'rankd.yaml:1:16 server.port: is "7265"; expected a whole number from 0 to 65535, without quotes',
    ]);
    for (const list of ['20, Officer', '[20, Officer]', '["20", "Officer"]', "'20','Officer'"]) {
      const env = { RANKD_POLICY_LOCKED_ROLES: list };
      box.write('rankd.yaml', '');
      expect(box.load({ env }).config.policy.lockedRoles).toEqual([20, 'Officer']);
    }
  });
});
