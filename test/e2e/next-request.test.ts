import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';

/** Uses the built binary to test that a change made by a command affects the daemon's very next request. */
const home = new CliHome();
let daemon: DaemonProcess;
let secret: string;

beforeAll(async () => {
  daemon = await DaemonProcess.start(home);
  secret = await createKey('game');
  await rankd('whitelist', 'add', '1', '--key', 'game');
});

afterAll(async () => {
  await daemon?.[Symbol.asyncDispose]();
  home[Symbol.dispose]();
});

async function rankd(...args: string[]): Promise<Record<string, unknown>> {
  return home.json(...args);
}

async function createKey(name: string): Promise<string> {
  const { secret: made } = await home.json<{ secret: string }>('key', 'create', name);
  return made;
}

async function verify(key = secret): Promise<number> {
  return (await daemon.verify(key)).status;
}

describe('a change from the shell applies from the next request of the running daemon', () => {
  test('key create, whitelist add and whitelist remove', async () => {
    const made = await createKey('fresh');
    expect(await verify(made)).toBe(403);
    await rankd('whitelist', 'add', '1', '--key', 'fresh');
    expect(await verify(made)).toBe(200);
    await rankd('whitelist', 'remove', '1', '--key', 'fresh');
    expect(await verify(made)).toBe(403);
  });

  test('whitelist disable and enable', async () => {
    expect(await verify()).toBe(200);
    await rankd('whitelist', 'disable', '1', '--key', 'game');
    expect(await verify()).toBe(403);
    await rankd('whitelist', 'enable', '1', '--key', 'game');
    expect(await verify()).toBe(200);
  });

  test('workspace suspend and resume, plan free and plan top', async () => {
    await rankd('workspace', 'suspend', '-y');
    expect(await verify()).toBe(401);
    await rankd('workspace', 'resume');
    expect(await verify()).toBe(200);
    await rankd('workspace', 'plan', 'free', '-y');
    expect(await verify()).toBe(401);
    await rankd('workspace', 'plan', 'top');
    expect(await verify()).toBe(200);
  });

  test('key rotate: the new secret works at once, the old one until the overlap ends', async () => {
    const old = await createKey('turning');
    await rankd('whitelist', 'add', '1', '--key', 'turning');
    const { secret: next } = await home.json<{ secret: string }>('key', 'rotate', 'turning', '--overlap', '1h');
    expect([await verify(old), await verify(next)]).toEqual([200, 200]);
    const { secret: last } = await home.json<{ secret: string }>('key', 'rotate', 'turning', '--overlap', '0s');
    expect([await verify(old), await verify(next), await verify(last)]).toEqual([401, 401, 200]);
  });

  test('key revoke', async () => {
    const made = await createKey('leaked');
    await rankd('whitelist', 'add', '1', '--key', 'leaked');
    expect(await verify(made)).toBe(200);
    await rankd('key', 'revoke', 'leaked', '-y');
    expect(await verify(made)).toBe(401);
  });

  test('rank set: the game sees the rank that the operator gave, and the history has both changes', async () => {
    await rankd('rank', 'set', '1004', '20');
    const { status, json } = await daemon.rank(secret, { rankeeId: 1004 });
    expect(status).toBe(200);
    expect(json).toMatchObject({
      success: true,
      message: 'Bob (1004) is already Officer (rank 20). (simulated group)',
    });
    const { changes } = await home.json<{ changes: object[] }>('history', 'list', '--user', '1004');
    expect(changes).toMatchObject([
      { state: 'applied', placeId: 1 },
      { state: 'applied', placeId: null },
    ]);
  });
});
