import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { asRankdError, RankdError } from '../../base/errors.ts';
import { storeNamed } from '../../config/find-store.ts';
import type { CopyPlace } from '../../ports/index.ts';
import { copyPlaceOf } from '../../stores/engine.ts';
import { acceptDocument, acceptServer, copyDocument, copyStore } from '../../usecases/database/database.ts';
import type { Cli } from '../cli.ts';
import { command, commandGroup, neededOption } from '../command.ts';
import { nonEmpty } from '../input/arguments.ts';
import { confirm } from '../input/confirm.ts';
import { facts } from '../output/table.ts';
import { whileWorking } from '../output/terminal.ts';

export const storeCommands = commandGroup({
  name: 'store',
  about: 'where rankd stores its data: SQLite in a data directory, or PostgreSQL',
  examples: [
    'rankd store copy --from rankd-backup.db --to postgres://rankd@db.example.com/rankd',
    'rankd store accept',
  ],
  commands: [
    command({
      name: 'copy',
      about:
        'copy all data from one store to an empty one, with all daemons stopped, and compare the two. WHERE is a data directory, a file that `rankd backup` made, or the URL of a database: postgres://USER@HOST/DATABASE',
      options: {
        from: neededOption('--from <where>', 'the store that has the data, which is not changed', nonEmpty),
        to: neededOption('--to <where>', 'a data directory without a database, or an empty database', nonEmpty),
      },
      examples: [
        'rankd store copy --from /var/lib/rankd --to postgres://rankd@db.example.com/rankd',
        'rankd store copy --from postgres://rankd@db.example.com/rankd --to new-data',
        'rankd store copy --from rankd-backup.db --to postgres://rankd@db.example.com/rankd',
      ],
      run: copy,
    }),
    command({
      name: 'accept',
      about:
        'use a different PostgreSQL server than before, after a restored dump, an upgrade or a move: shows the system_identifier of the known cluster and of the new one, and asks first. Run it on each machine',
      examples: ['rankd store accept', 'rankd store accept -y --json'],
      run: accept,
    }),
  ],
});

async function accept(cli: Cli): Promise<void> {
  const server = await acceptServer(cli.operations, cli.by, ({ place, known, found }) =>
    confirm(cli, `Use the cluster ${found}, which now answers at ${place}, instead of ${known}?`),
  );
  const document = acceptDocument(server);
  cli.print({ server: document }, facts({ ...document, accepted: null }));
  if (!document.accepted) cli.say('This is the server that rankd already uses; there is nothing to accept.');
  else cli.say('rankd uses this server from now on; a daemon of this data directory needs no restart.');
}

async function copy(cli: Cli, where: { from: string; to: string }): Promise<void> {
  const from = await place(cli, { option: '--from', where: where.from });
  const to = await place(cli, { option: '--to', where: where.to });
  if (from.text === to.text) {
    throw new RankdError('usage', `--from and --to are the same place: ${to.text}.`, {
      hint: 'name an empty place with --to',
    });
  }
  const copied = await whileWorking(cli.line, 'copying', () => copyStore({ from, to })).catch(inOptionsOfCopy);
  const document = copyDocument(copied, { from: from.text, to: to.text });
  cli.print({ copy: document }, facts({ ...document, rows: null }));
  cli.say(
    'rankd compared the two row by row, and they have the same data. The Roblox key and a simulated group are not part of it.',
  );
  cli.say(
    'Now point the daemons to the copy, with store.url or --data-dir, and never start a daemon on the old data again.',
  );
}

/** Rethrows the error. If its hint mentions --data-dir, replaces that with --from or --to. */
function inOptionsOfCopy(error: unknown): never {
  const { code, message, hint } = asRankdError(error);
  if (!hint?.includes('--data-dir')) throw error;
  throw new RankdError(code, message, {
    cause: error,
    hint: hint.replace(/--data-dir( or RANKD_DATA_DIR)?/, '--from or --to'),
  });
}

async function place(cli: Cli, { option, where }: { option: string; where: string }): Promise<CopyPlace> {
  if (/^([a-z]+:\/\/|postgres(ql)?:)/i.test(where)) {
    return copyPlaceOf({ server: await storeNamed(cli.configSources, { url: where, option }) }, systemClock);
  }
  const path = resolve(cli.io.cwd, where);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile()) return copyPlaceOf({ file: path }, systemClock);
  if (stats === undefined && option === '--from') {
    throw new RankdError('not_found', `There is no ${path}.`, {
      hint: 'name a data directory, a file that `rankd backup` made, or the URL of a database with --from',
    });
  }
  cli.refuseRootIn(path);
  return copyPlaceOf({ dataDir: path }, systemClock);
}
