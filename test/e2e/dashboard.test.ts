import { afterAll, beforeAll, expect, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { CliHome } from '../support/run-cli.ts';

let home: CliHome;
let daemon: DaemonProcess;

beforeAll(async () => {
  home = new CliHome();
  daemon = await DaemonProcess.start(home, { env: { RANKD_DASHBOARD_PORT: '0' } });
});

afterAll(async () => {
  await daemon.stop();
  home[Symbol.dispose]();
});

test('a link logs in once; the cookie is for this page alone and no script can read it', async () => {
  const visitor = await PageVisitor.withLink(home);
  const { port } = new URL(visitor.origin);
  const login = await visitor.logIn();
  expect(login.headers['set-cookie']).toEqual([
    expect.stringMatching(new RegExp(`^rankd_${port}=[\\w-]{43}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict$`)),
  ]);
  const { token, ...session } = login.json.session;
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(await visitor.read('/api/session')).toEqual({ v: 1, session });
  const second = new PageVisitor(`${visitor.origin}/login#${visitor.secret}`);
  expect(await second.logIn()).toMatchObject({ status: 403, json: { code: 'link_refused', try: 'rankd dashboard' } });
});

test('what the page reads are the documents of the command line', async () => {
  await home.json('rank', 'set', '1001', '20');
  const visitor = await PageVisitor.loggedIn(home);
  const { status } = await visitor.read('/api/status');
  const { uptimeSeconds: _, ...asPrinted } = (await home.json<{ status: typeof status }>('status')).status;
  expect(status).toMatchObject(asPrinted);
  const { changes, next } = await visitor.read('/api/changes');
  expect({ changes, next }).toEqual({ ...(await home.json('history', 'list')), v: undefined, next: null });
  const { change } = await visitor.read(`/api/change?id=${changes[0].id}`);
  expect(change).toEqual((await home.json<{ change: unknown }>('history', 'show', changes[0].id)).change);
});
