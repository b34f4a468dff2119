import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { startNode } from './node-process.ts';

test.runIf(process.platform === 'linux')('a daemon ends with the test process, even if that is killed', async () => {
  const tests = startNode(`
    import { DaemonProcess } from './test/support/daemon-process.ts';
    import { CliHome } from './test/support/run-cli.ts';
    const home = new CliHome();
    const daemon = await DaemonProcess.start(home);
    console.log(JSON.stringify({ pid: daemon.process.pid, url: daemon.url, folder: home.folder }));
  `);
  if (tests.stdout === null) throw new Error('no stdout');
  const [line] = await once(createInterface({ input: tests.stdout }), 'line');
  const { pid, url, folder } = JSON.parse(line);
  const answers = () =>
    fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  onTestFinished(async () => {
    if (await answers()) process.kill(pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  expect(await answers()).toBe(true);
  tests.kill('SIGKILL');
  await expect.poll(answers).toBe(false);
});
