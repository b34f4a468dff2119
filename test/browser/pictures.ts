import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';
import { startWebhookSink } from '../support/webhook-sink.ts';
import { asAnn, live30Days, promoteNow, writeGroup } from './history.ts';
import { openBrowser } from './open-browser.ts';
import { Visitor, views } from './scene.ts';

/**
 * `npm run pictures`: takes pictures of every view of the built dashboard, light and dark, wide and narrow. Three of
 * them go into docs/, for README and docs/dashboard.md.
 */
const { out } = new Command('npm run pictures --')
  .description('Takes pictures of each view of the built page; three of them go into docs/.')
  .option('--out <folder>', 'where the pictures go', 'pictures')
  .parse()
  .opts<{ out: string }>();
const docs = fileURLToPath(new URL('../../docs/', import.meta.url));
mkdirSync(out, { recursive: true });

using home = new CliHome();
writeGroup(home);
await using sink = await startWebhookSink();
const key = await live30Days(home, { good: sink.url, bad: 'http://127.0.0.1:9/stats' });
await using daemon = await DaemonProcess.start(home);
await promoteNow(daemon, key);
await using opened = await openBrowser();

const sizes = { wide: { width: 1360, height: 850 }, narrow: { width: 360, height: 740 } };
for (const colorScheme of ['light', 'dark'] as const)
  for (const [name, viewport] of Object.entries(sizes)) {
    const context = await opened.browser.newContext({ colorScheme, viewport, locale: 'en-GB' });
    await using visitor = await Visitor.open(context);
    const { page } = visitor;
    const waitForPaint = () => page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 300)));
    const takePicture = async (what: string) => {
      await waitForPaint();
      await page.screenshot({ path: join(out, `${what}-${colorScheme}-${name}.png`) });
    };
    const link = await home.run(['dashboard', '--json'], { env: { NODE_OPTIONS: asAnn } });
    const { url } = link.json<{ url: string }>();
    await page.goto(url);
    await page.getByText('Harbour Watch').waitFor();
    await visitor.go('chart');
    await page.getByText('still being counted').waitFor({ state: 'detached', timeout: 120_000 });
    for (const view of views) {
      await visitor.go(view);
      if (view === 'chart') await page.getByLabel('30 days').check();
      await takePicture(view);
    }
    await visitor.go('rank?user=1001');
    await page.locator('.card').waitFor();
    await takePicture('member');
    await page.getByRole('button', { name: 'Promote…' }).click();
    await page.locator('dialog .preview').waitFor();
    await takePicture('promote');
    if (colorScheme === 'light' && name === 'wide') await page.screenshot({ path: join(docs, 'dashboard-rank.png') });
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Give role…' }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Take role…' }).click();
    await page.getByLabel('Extra role').selectOption({ index: 1 });
    await page.locator('dialog .preview').waitFor();
    await takePicture('role');
    await page.keyboard.press('Escape');
    await page.getByText('A list of members').click();
    await page.getByRole('button', { name: 'Check the list…' }).scrollIntoViewIfNeeded();
    await takePicture('list');
    await visitor.go('keys');
    await page.locator('button.opener').first().click();
    await takePicture('key');
    await page.getByRole('button', { name: 'New key…' }).click();
    await page.getByRole('dialog').waitFor();
    await takePicture('new-key');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Unlink…' }).last().scrollIntoViewIfNeeded();
    await takePicture('people');
    await visitor.go('webhooks');
    await page.getByRole('button', { name: 'New webhook…' }).click();
    await page.getByRole('dialog').waitFor();
    await takePicture('new-webhook');
    await page.keyboard.press('Escape');
    await visitor.go('changes');
    await page.locator('button.opener').first().waitFor();
    if (colorScheme === 'light' && name === 'wide') await page.screenshot({ path: join(docs, 'dashboard.png') });
    await page.locator('button.opener').first().click();
    await page.getByRole('button', { name: 'Undo…' }).waitFor();
    await takePicture('details');
    await page.getByRole('button', { name: 'Undo…' }).click();
    await page.getByText('would be put back').waitFor();
    await takePicture('undo');
    if (colorScheme === 'dark' && name === 'wide') await page.screenshot({ path: join(docs, 'dashboard-undo.png') });
    await page.keyboard.press('Escape');
    await visitor.go('keys');
    await page.getByRole('button', { name: 'Key event-bot' }).click();
    await page.getByRole('button', { name: 'New secret… event-bot' }).click();
    await page.getByLabel('The old secret still works for').fill('0s');
    await page.getByRole('button', { name: 'Create the secret' }).click();
    await page.getByRole('button', { name: 'Copy' }).waitFor();
    await takePicture('secret');
    visitor.expectNoErrors();
  }
process.stdout.write(`${out}\n`);
