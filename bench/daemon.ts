import { readFileSync, writeFileSync } from 'node:fs';
import { binary, CliHome } from '../test/support/run-cli.ts';
import { type ServerProcess, startServer } from './processes.ts';

/** The place id on the whitelist of every key in the bench. */
export const place = 42;

/** Limits that no load in the bench reaches. */
const limits = `limits:
  rank: 1000000
  rank_burst: 1000000
  verify: 1000000
  failed_auth: 1000000
`;

const unit = readFileSync(new URL('../config/rankd.service', import.meta.url), 'utf8');
const nodeOptions = /^Environment=NODE_OPTIONS=(.+)$/m.exec(unit)?.[1] ?? '';

/** The built rankd in a temporary home folder, with one key. */
export interface Rankd extends AsyncDisposable {
  home: CliHome;
  secret: string;
  start(env?: Record<string, string>): Promise<ServerProcess>;
}

/** `config`: the lines of `rankd.yaml` other than the limits. */
export async function openRankd(config = 'platform:\n  kind: simulated\n'): Promise<Rankd> {
  const home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), config + limits);
  const { secret } = await home.json<{ secret: string }>('key', 'create', 'bench');
  await home.json('whitelist', 'add', String(place));
  return {
    home,
    secret,
    start: (env = {}) =>
      startServer([binary, 'serve', '--port', '0', '--json', '--config', home.path('rankd.yaml')], {
        env: { HOME: home.folder, RANKD_DATA_DIR: home.dataDir, NODE_OPTIONS: nodeOptions, ...env },
        logFile: home.path('rankd.log'),
      }),
    async [Symbol.asyncDispose]() {
      home[Symbol.dispose]();
    },
  };
}
