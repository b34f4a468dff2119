import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { renameFile } from '../../src/base/files.ts';
import { systems } from '../../src/base/system.ts';
import { dataDirFindings } from '../../src/cli/machine-findings.ts';
import { commandFor } from '../../src/cli/output/help.ts';
import { openGroupIn } from '../../src/cli/windows-access.ts';
import { dataDirectory } from '../../src/config/data-dir.ts';
import { searchPath } from '../../src/config/locate.ts';
import { tempDir } from '../support/temp-dir.ts';

const { linux, windows } = systems;

test('only one file checks the operating system', () => {
  const src = fileURLToPath(new URL('../../src/', import.meta.url));
  const asking = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => {
    if (!name.endsWith('.ts')) return false;
    return /process\.platform|\bplatform\(\)|['"](win32|darwin|aix)['"]|\bos\.(platform|type)\b/.test(
      readFileSync(join(src, name), 'utf8'),
    );
  });
  expect(asking.map((name) => name.replaceAll('\\', '/'))).toEqual(['base/system.ts']);
});

describe('on Windows', () => {
  const env: Record<string, string> = {
    LOCALAPPDATA: 'C:\\Users\\ann\\AppData\\Local',
    APPDATA: 'C:\\Users\\ann\\AppData\\Roaming',
    USERPROFILE: 'C:\\Users\\ann',
    HOME: '/c/Users/ann', // as Git Bash sets it
  };
  const cwd = 'D:\\games';
  const where = { env, cwd, home: 'C:\\Users\\ann', serviceDataDir: '/nowhere' };

  test("the data is in the user's local profile, unless a flag or RANKD_DATA_DIR names another directory", () => {
    expect(dataDirectory(undefined, where, windows)).toBe('C:\\Users\\ann\\AppData\\Local\\rankd');
    expect(dataDirectory(undefined, { ...where, env: {} }, windows)).toBe('C:\\Users\\ann\\AppData\\Local\\rankd');
    expect(dataDirectory('data', where, windows)).toBe('D:\\games\\data');
    expect(dataDirectory(undefined, { ...where, env: { RANKD_DATA_DIR: 'E:/rankd' } }, windows)).toBe('E:\\rankd');
  });

  test("rankd searches the current folder and the user's profile for its configuration, but no folder open to every user", () => {
    expect(searchPath(where, windows).map(({ path }) => path)).toEqual([
      'D:\\games\\rankd.yaml',
      'C:\\Users\\ann\\AppData\\Roaming\\rankd\\rankd.yaml',
    ]);
    expect(searchPath({ env: { USERPROFILE: 'C:\\Users\\ann' }, cwd }, windows)[1]?.path).toBe(
      'C:\\Users\\ann\\AppData\\Roaming\\rankd\\rankd.yaml',
    );
  });

  test('the commands in hints are valid in PowerShell, and contain neither && nor a single quote', () => {
    const request = {
      url: 'http://127.0.0.1:7265/v1/ranker?placeid=1',
      secret: 'rk_live_x',
      body: { a: 'b $c', n: 1 },
    };
    const line = windows.post(request);
    const [, piped = ''] =
      /^"(.+)" \| curl\.exe -s "http:\S+" -H "Authorization: Bearer rk_live_x" -d "@-"$/.exec(line) ?? [];
    expect(JSON.parse(piped.replaceAll(/`(.)/g, '$1'))).toEqual(request.body);
    expect(piped.replaceAll(/`./g, '')).not.toMatch(/["$]/); // PowerShell would misread these characters
    const path = 'C:\\Users\\Ann & Bob\\$x';
    const { synchronizeClock, ...onPaths } = windows.commands;
    const commands = [line, synchronizeClock(), ...Object.values(onPaths).map((command) => command(path))];
    expect(commands.filter((command) => /'|&&/.test(command))).toEqual([]);
    expect(onPaths.makeFolder(path)).toBe('mkdir "C:\\Users\\Ann & Bob\\`$x"');
    expect(onPaths.makeFolder('C:\\rankd')).toBe('mkdir C:\\rankd');
  });

  test('suggested commands start rankd the same way as the current process', () => {
    const typed = (script: string, env = {}) => commandFor({ script, cwd, env }, windows);
    expect(typed('C:\\Users\\ann\\AppData\\Roaming\\npm\\node_modules\\rankd\\bin\\rankd.js')).toBe('rankd');
    expect(typed('D:\\games\\rankd\\bin\\rankd.js', { npm_command: 'exec' })).toBe('npx rankd');
    expect(typed('D:\\games\\bin\\rankd.js')).toBe('node bin\\rankd.js');
    expect(typed('C:\\my rankd\\bin\\rankd.js')).toBe('node "C:\\my rankd\\bin\\rankd.js"');
  });

  test('hints for a portable rankd start it in PowerShell syntax, in its folder or elsewhere', () => {
    const typed = (launcher: string, folder = cwd) =>
      commandFor({ script: 'x', cwd: folder, env: {}, launcher }, windows);
    expect(typed('D:\\my rankd\\rankd.cmd', 'D:\\my rankd')).toBe('.\\rankd');
    expect(typed('D:\\rankd\\rankd.cmd')).toBe('D:\\rankd\\rankd.cmd');
    expect(typed('D:\\my rankd\\rankd.cmd')).toBe('& "D:\\my rankd\\rankd.cmd"');
  });

  test('renameFile replaces a file once another program closes it, and reports a lasting error', () => {
    const busyFor = (times: number, code: string) => {
      let tries = 0;
      const rename = () => {
        tries += 1;
        if (tries <= times) throw Object.assign(new Error(code), { code });
      };
      return { rename, tries: () => tries };
    };
    for (const code of ['EPERM', 'EACCES', 'EBUSY']) {
      const { rename, tries } = busyFor(1, code);
      renameFile('new', 'old', { system: windows, rename });
      expect(tries()).toBe(2);
    }
    const missing = busyFor(1, 'ENOENT');
    expect(() => renameFile('new', 'old', { system: windows, rename: missing.rename })).toThrow('ENOENT');
    const forbidden = busyFor(1, 'EPERM');
    expect(() => renameFile('new', 'old', { system: linux, rename: forbidden.rename })).toThrow('EPERM');
    expect(forbidden.tries()).toBe(1);
  });

  test('a data directory on a network share is reported, and one on a local disk is not', () => {
    expect(windows.sharedFileSystem('\\\\nas\\share\\rankd', 0)).toBe('a network share');
    for (const local of ['C:\\rankd', '\\\\?\\C:\\rankd']) expect(windows.sharedFileSystem(local, 0)).toBeUndefined();
  });

  /** The security descriptor of a new folder in the user's profile. */
  const profileAcl =
    'O:S-1-5-21-1-2-3-1001G:S-1-5-21-1-2-3-513D:(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIID;FA;;;S-1-5-21-1-2-3-1001)';
  /** The security descriptor of a new folder in a disk's root directory. */
  const rootAcl = 'O:BAG:DUD:(A;OICIID;FA;;;BA)(A;OICIID;FA;;;SY)(A;OICIID;0x1200a9;;;BU)(A;ID;0x1301bf;;;AU)';

  test.each([
    [profileAcl, undefined],
    [rootAcl, 'every user of this machine'],
    ['D:PAI(A;OICI;FR;;;WD)', 'Everyone'],
    ['D:(A;OICIIO;GXGR;;;AU)', 'every user who is logged on'],
    ['D:NO_ACCESS_CONTROL', 'Everyone'],
    ['D:(D;;FA;;;WD)(A;;FA;;;SY)', undefined],
    ['D:(A;;0x100000;;;WD)', undefined],
    ['D:(A;;FA;;;SY)S:AI(AU;SAFA;FA;;;WD)', undefined],
  ])('the access list %s grants access to: %s', (list, group) => {
    expect(openGroupIn(list)).toBe(group);
  });

  test('the doctor warns about a data directory that others can read, with the command that restricts it', async () => {
    const dataDir = tempDir();
    const findings = async (list: string | undefined) =>
      (await dataDirFindings(dataDir, { system: windows, readAccessList: async () => list }))[0];
    expect(await findings(rootAcl)).toMatchObject({
      grade: 'warn',
      text: `every user of this machine can access ${dataDir}`,
      fix: expect.stringMatching(/^icacls .* \/inheritance:r \/grant:r "\$\{env:USERNAME\}:\(OI\)\(CI\)F"$/),
    });
    expect(await findings(profileAcl)).toMatchObject({ grade: 'ok', text: `${dataDir} is private and writable` });
    expect(await findings(undefined)).toMatchObject({ grade: 'ok', text: `${dataDir} is writable` });
  });
});
