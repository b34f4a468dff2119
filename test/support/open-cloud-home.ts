import { writeFileSync } from 'node:fs';
import { DaemonHere } from './daemon-here.ts';
import { DaemonProcess } from './daemon-process.ts';
import { type FakeOpenCloud, startFakeOpenCloud } from './fake-open-cloud/index.ts';
import { CliHome } from './run-cli.ts';

/** A home that is configured for a new fake Roblox, with a key for place 1. */
export interface OpenCloudHome extends AsyncDisposable {
  home: CliHome;
  roblox: FakeOpenCloud;
  secret: string;
  /** Starts a daemon as a separate process, with additional environment variables. */
  startDaemon(env?: Record<string, string>): Promise<DaemonProcess>;
  /** Starts a daemon in this process, which is faster. */
  serve(env?: Record<string, string>): Promise<DaemonHere>;
  latestChange(): Promise<{ id: string; state: string; code: string | null }>;
}

export async function openCloudHome(): Promise<OpenCloudHome> {
  await using opened = new AsyncDisposableStack();
  const home = opened.use(new CliHome());
  const roblox = await startFakeOpenCloud();
  opened.defer(() => roblox.close());
  writeFileSync(home.path('roblox.key'), roblox.apiKey, { mode: 0o600 });
  writeFileSync(
    home.path('rankd.yaml'),
    `server: { port: 0 }
group: { id: ${roblox.groupId} }
platform: { api_key_file: roblox.key, base_url: "${roblox.baseUrl}", legacy_base_url: "${roblox.legacyBaseUrl}", users_base_url: "${roblox.usersBaseUrl}", develop_base_url: "${roblox.developBaseUrl}" }
`,
  );
  const secret = await home.createKey();
  const daemons = opened.use(new AsyncDisposableStack());
  const all = opened.move();
  return {
    home,
    roblox,
    secret,
    serve: async (env = {}) => daemons.use(await DaemonHere.start(home, { env })),
    startDaemon: async (env = {}) => daemons.use(await DaemonProcess.start(home, { env })),
    latestChange: async () => {
      const { changes } = await home.json<{ changes: Array<{ id: string; state: string; code: string | null }> }>(
        'history',
        'list',
      );
      const [latest] = changes;
      if (latest === undefined) throw new Error('the history is empty');
      return latest;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
