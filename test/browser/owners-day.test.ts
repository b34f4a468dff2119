import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostileTexts } from '../attack/hostile.ts';
import { isOnPostgres } from '../support/store-of-app.ts';
import { startWebhookSink } from '../support/webhook-sink.ts';
import { Scene, type Visitor, views } from './scene.ts';
import { browser } from './which-browser.ts';

/** An owner's daily work on the page. On PostgreSQL, the page is served on the API's port, below a path. */
describe.skipIf(browser === undefined)("an owner's day", () => {
  let scene: Scene;
  let ann: Visitor;

  beforeAll(async () => {
    scene = await Scene.open(settings);
    ann = await scene.operator();
  });
  afterAll(() => scene?.[Symbol.asyncDispose]());

  test('the address of each view is below the path of the page, also after a reload and in links', async () => {
    await using visitor = await scene.operator();
    const { page } = visitor;
    for (const view of views) {
      await page
        .locator('nav')
        .getByRole('link', { name: new RegExp(view.replace('setup', 'set-up'), 'i') })
        .click();
      await visitor.settled();
      expect(page.url()).toBe(`${scene.origin}${scene.path}#/${view}`);
    }
    await page.reload();
    await visitor.settled();
    expect(await visitor.context.cookies()).toMatchObject([{ httpOnly: true, sameSite: 'Strict', path: '/' }]);
    expect(visitor.requests.filter((url) => !url.startsWith(scene.origin + scene.path))).toEqual([]);
    visitor.expectNoErrors();
  });

  const checked = new Set<string>();
  /** Checks a dialog's accessibility only the first time that it opens, and only on SQLite: the check takes seconds. */
  const dialogOf = async (visitor: Visitor, name: RegExp | string) => {
    const dialog = visitor.page.getByRole('dialog', { name });
    await dialog.waitFor();
    if (!isOnPostgres && !checked.has(String(name))) expect(await visitor.accessibilityProblems()).toEqual([]);
    checked.add(String(name));
    expect(await visitor.fits()).toBe(true);
    return dialog;
  };
  const rolesOf = async (user: number) => {
    const { member } = await scene.home.json<{ member: { roles: { name: string }[] } }>('rank', 'show', `${user}`);
    return member.roles.map(({ name }) => name);
  };

  test('a member is found, promoted with the keyboard, suspended and unsuspended; mistakes are shown at their fields', async () => {
    await using visitor = await scene.operator({ viewport: { width: 360, height: 740 } });
    const { page } = visitor;
    await scene.home.json('rank', 'set', '1001', 'Trainee', '--lift');
    await visitor.go('rank');
    await page.getByLabel(/^Member:/).fill(hostileTexts[12] ?? '<img>');
    await page.keyboard.press('Enter');
    await page.locator('.field:has([name=user]) [role=alert]').waitFor();
    await page.getByLabel(/^Member:/).fill('https://www.roblox.com/users/1001/profile');
    await page.keyboard.press('Enter');
    await page.locator('.card').getByText('Newcomer').first().waitFor();
    await visitor.tabTo('Promote…');
    await page.keyboard.press('Enter');
    const promote = await dialogOf(visitor, 'Promote Newcomer?');
    await promote.locator('.preview').getByText('Officer').waitFor();
    expect(await rolesOf(1001)).toContain('Trainee');
    await promote.getByLabel(/^Reason/).fill('passed');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Done' }).waitFor();
    await page.keyboard.press('Escape');
    expect(await rolesOf(1001)).toContain('Officer');
    await page.locator('.card').getByText('passed').waitFor();
    await page.getByRole('button', { name: 'Suspend…' }).click();
    const suspend = await dialogOf(visitor, 'Suspend Newcomer?');
    await suspend.getByLabel('Duration').fill('long');
    await suspend.locator('.field:has([name=for]) [role=alert]').waitFor();
    await suspend.getByLabel('Duration').fill('12h');
    await suspend.locator('.preview').waitFor();
    await suspend.getByRole('button', { name: 'Suspend' }).click();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Lift the suspension…' }).click();
    await (await dialogOf(visitor, /^Lift/)).getByRole('button', { name: 'Lift' }).click();
    await page.getByRole('dialog', { name: 'Done' }).getByText('Officer').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Promote…' }).waitFor();
    expect(await rolesOf(1001)).toContain('Officer');
    visitor.ignoreErrors(/40\d/);
    visitor.expectNoErrors();
  });

  test('an extra role is given temporarily, ended early, given permanently, and taken away', async () => {
    const { page } = ann;
    await scene.home.json('rank', 'set', '1001', 'Trainee');
    await ann.go('rank?user=1001');
    const change = async (verb: string, lasts?: string) => {
      await page.getByRole('button', { name: `${verb} role…` }).click();
      const dialog = await dialogOf(ann, new RegExp(`^${verb} `));
      await dialog.getByLabel('Extra role').selectOption({ label: 'Captain (50)' });
      if (lasts !== undefined) await dialog.getByLabel(/^Duration/).fill(lasts);
      await dialog.getByText(verb === 'Give' ? '+ Captain' : '− Captain').waitFor();
      await dialog.getByText('The rank stays Trainee.').waitFor();
      await dialog.getByRole('button', { name: `${verb} role` }).click();
      await page.getByRole('dialog', { name: 'Done' }).getByRole('button', { name: 'Close' }).click();
    };
    await change('Give', '7d');
    expect(await rolesOf(1001)).toContain('Captain');
    await page.getByRole('button', { name: 'End the temporary role…' }).click();
    await (await dialogOf(ann, /^End the temporary role/)).getByRole('button', { name: 'End' }).click();
    await page.getByRole('dialog', { name: 'Done' }).getByRole('button', { name: 'Close' }).click();
    await expect.poll(() => rolesOf(1001)).not.toContain('Captain');
    await change('Give');
    expect(await rolesOf(1001)).toContain('Captain');
    await change('Take');
    expect(await rolesOf(1001)).not.toContain('Captain');
    ann.expectNoErrors();
  });

  test('a key for people on Discord is created without a secret', async () => {
    const { page } = ann;
    await ann.go('keys');
    await page.getByRole('button', { name: 'New key…' }).click();
    const form = page.getByRole('dialog', { name: 'New key' });
    await form.getByLabel('Name').fill('staff');
    await form.getByLabel(/^for people on Discord/).check();
    await form.getByRole('button', { name: 'Create the key' }).dblclick();
    await ann.waitUntilVisible(ann.row('staff'));
    expect(await page.getByRole('dialog').count()).toBe(0);
    const { key } = await scene.home.json<{ key: object }>('key', 'show', 'staff');
    expect(key).toMatchObject({ forDiscord: true });
    await page.getByRole('button', { name: 'Key staff' }).click();
    await page.getByText('none: people on Discord use this key').waitFor();
    ann.expectNoErrors();
  });

  test('a person on Discord is linked and unlinked; mistakes are shown at their fields', async () => {
    const { page } = ann;
    await ann.go('keys');
    await page.getByRole('button', { name: 'Link a person…' }).click();
    const form = await dialogOf(ann, 'Link a person');
    for (const wrong of ['<b data-hostile>', 'ann']) {
      await form.getByLabel(/^Discord user ID/).fill(wrong);
      await form.getByRole('button', { name: 'Link' }).click();
      await form.locator('.field:has([name=discord]) [role=alert]').waitFor();
    }
    await form.getByLabel(/^Discord user ID/).fill('4400000000000000005');
    await form.getByLabel(/^Roblox user/).fill('https://www.roblox.com/users/1001/profile');
    await form.getByRole('button', { name: 'Link' }).dblclick();
    await ann.waitUntilVisible(ann.row('4400000000000000005').getByText('Newcomer'));
    await page.getByRole('button', { name: 'Unlink… 4400000000000000005' }).click();
    await (await dialogOf(ann, 'Unlink Newcomer?')).getByRole('button', { name: 'Unlink' }).click();
    await ann.waitUntilVisible(page.getByText('No one is linked yet.'));
    ann.ignoreErrors(/400/);
    ann.expectNoErrors();
  });

  test('a pasted list is checked, then runs and shows its progress and each outcome', async () => {
    const { page } = ann;
    await ann.go('rank');
    await page.getByText('A list of members').click();
    await page.getByLabel('Members').fill('1002\tMonday\nno user at all');
    await page.getByLabel('Change', { exact: true }).selectOption('set');
    await page.getByLabel('New rank').selectOption({ label: 'Trainee (10)' });
    await page.getByRole('button', { name: 'Check the list…' }).click();
    await page.locator('.field:has([name=users]) [role=alert]').waitFor();
    await page.getByLabel('Members').fill('1002\tMonday\nNewcomer;Tuesday');
    await page.getByRole('button', { name: 'Check the list…' }).click();
    await (await dialogOf(ann, /^Set the rank of all/)).getByRole('button', { name: 'Change 2 members' }).dblclick();
    const done = page.getByRole('dialog', { name: 'The list is done' });
    await done.waitFor();
    expect(await done.locator('tbody tr').count()).toBe(2);
    await page.getByRole('button', { name: 'Close' }).click();
    for (const user of [1001, 1002]) expect(await rolesOf(user)).toContain('Trainee');
    ann.ignoreErrors(/400/);
    ann.expectNoErrors();
  });

  test('a key is created with a place, its secret is shown once and works, and the place is disabled', async () => {
    const { page } = ann;
    await ann.go('keys');
    await page.getByRole('button', { name: 'New key…' }).click();
    await ann.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const form = await dialogOf(ann, 'New key');
    await form.getByLabel('Name').fill('"><img src=x>');
    await form.getByRole('button', { name: 'Create the key' }).click();
    await form.locator('.field:has([name=name]) [role=alert]').waitFor();
    await form.getByLabel('Name').fill('lobby');
    await form.getByLabel(/^Places/).fill('https://www.roblox.com/games/77/Lobby');
    await form.getByLabel('give and take extra roles').check();
    await form.getByLabel('Highest rank it can touch').selectOption({ label: 'Officer (20)' });
    await form.getByRole('button', { name: 'Create the key' }).dblclick();
    const shown = await dialogOf(ann, 'The secret of lobby');
    const secret = (await shown.locator('.secret code').textContent()) ?? '';
    await shown.getByRole('button', { name: 'Copy' }).click();
    await shown.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(secret);
    const verify = async () => (await scene.daemon.verify(secret, 77)).status;
    expect(await verify()).toBe(200);
    await shown.getByRole('button', { name: 'I have stored it' }).click();
    expect(await page.getByText(secret).count()).toBe(0);
    await page.getByRole('button', { name: 'Key lobby' }).click();
    await page.getByLabel(/^Place id/).fill('my game');
    await page.getByRole('button', { name: 'Add the place' }).click();
    await page.locator('.field:has([name=places]) [role=alert]').waitFor();
    await page.getByRole('button', { name: 'Disable place 77' }).click();
    await page.getByRole('button', { name: 'Enable place 77' }).waitFor();
    expect(await verify()).toBe(403);
    await page.getByRole('button', { name: 'Remove place 77' }).click();
    await page.getByText('none yet: no game can use this key').waitFor();
    await page.getByRole('button', { name: 'Limits… lobby' }).click();
    const limits = await dialogOf(ann, 'Limits of lobby');
    await limits.getByLabel('Direction').selectOption('promote');
    await limits.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'New secret… lobby' }).click();
    await (await dialogOf(ann, 'New secret for lobby')).getByRole('button', { name: 'Create the secret' }).click();
    const renewed = await dialogOf(ann, 'The secret of lobby');
    expect(await renewed.locator('.secret code').textContent()).not.toBe(secret);
    await renewed.getByRole('button', { name: 'I have stored it' }).click();
    const { key } = await scene.home.json<{ key: object }>('key', 'show', 'lobby');
    expect(key).toMatchObject({
      ...{ state: 'rotating', scopes: ['verify', 'rank', 'roles'], maxRank: 20, direction: 'promote' },
    });
    await page.getByRole('button', { name: 'Revoke… lobby' }).click();
    await (await dialogOf(ann, /^Revoke lobby/)).getByRole('button', { name: 'Revoke' }).click();
    await ann.waitUntilVisible(ann.row('lobby').getByText('revoked'));
    ann.ignoreErrors(/400/);
    ann.expectNoErrors();
  });

  test('a view-only session has no button that changes anything', async () => {
    await using visitor = await scene.visitor();
    const { url } = await scene.home.json<{ url: string }>('dashboard', '--view');
    await visitor.page.goto(url);
    await visitor.page.getByText('view only').waitFor();
    await scene.home.json('rank', 'suspend', '1003', '--for', '3d');
    const shown: string[] = [];
    for (const view of [...views, 'rank?user=1001', 'changes?user=1001']) {
      await visitor.go(view);
      if (view === 'rank?user=1001') await visitor.page.locator('.card').waitFor();
      const openers = visitor.page.locator('main button.opener');
      if ((await openers.count()) > 0) await openers.first().click();
      shown.push(...(await visitor.page.locator('main button:visible').allInnerTexts()));
    }
    await scene.home.json('rank', 'unsuspend', '1003');
    const harmless = /^(|Search|Find|Older changes|More keys|All \d+)$/;
    expect(shown.map((text) => text.trim()).filter((text) => !harmless.test(text))).toEqual([]);
    visitor.expectNoErrors();
  });

  test('a webhook is added with a hidden address, paused, given different events, and removed', async () => {
    await using sink = await startWebhookSink();
    const { page } = ann;
    await ann.go('webhooks');
    await page.getByRole('button', { name: 'New webhook…' }).click();
    const form = await dialogOf(ann, 'New webhook');
    await form.getByLabel('Name').fill('bot');
    await form.getByLabel('Address').fill('not an address');
    await form.getByRole('button', { name: 'Add the webhook' }).click();
    await form.locator('.field:has([name=url]) [role=alert]').waitFor();
    expect(await form.getByLabel('Address').getAttribute('type')).toBe('password');
    await form.getByLabel('Address').fill(`${sink.url}/private-path`);
    await form.getByRole('button', { name: 'Add the webhook' }).click();
    await (await dialogOf(ann, 'The secret of bot')).getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('button', { name: 'Pause… bot' }).click();
    await (await dialogOf(ann, 'Pause bot?')).getByRole('button', { name: 'Pause' }).click();
    await ann.waitUntilVisible(ann.row('bot').getByText('disabled'));
    await page.getByRole('button', { name: 'Events… bot' }).click();
    const events = await dialogOf(ann, 'Events of bot');
    await events.getByLabel('everything').check();
    await events.getByRole('button', { name: 'Save' }).click();
    await ann.waitUntilVisible(ann.row('bot').getByText('all', { exact: true }));
    expect(await page.content()).not.toContain('private-path');
    await page.getByRole('button', { name: 'Remove… bot' }).click();
    await (await dialogOf(ann, 'Remove bot?')).getByRole('button', { name: 'Remove' }).click();
    await expect.poll(() => ann.row('bot').count()).toBe(0);
    ann.ignoreErrors(/400/);
    ann.expectNoErrors();
  });

  test('undo works with only the keyboard: it shows a preview, carries it out, and shows the outcome', async () => {
    const rank = () =>
      scene.home.json<{ member: { rank: number } }>('rank', 'show', '1002').then(({ member }) => member.rank);
    await scene.home.json('rank', 'set', '1002', '20');
    await scene.home.json('rank', 'set', '1002', '10');
    const named = () =>
      scene.home.json<{ changes: { userName: unknown }[] }>('history', 'list', '--user', '1002', '--limit', '1');
    await expect
      // The daemon looks up names one by one, so this may take a while.
      .poll(async () => (await named()).changes[0]?.userName, { timeout: 30_000 })
      .toBe('Patrol_Pat');
    await ann.go('changes?user=1002');
    const { page } = ann;
    await ann.tabTo('Details of the change to Patrol_Pat');
    await page.keyboard.press('Enter');
    await ann.waitUntilVisible(page.getByRole('button', { name: 'Undo…' }));
    await ann.tabTo('Undo…');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Undo' });
    await dialog.getByText('would be put back').waitFor();
    expect(await ann.accessibilityProblems()).toEqual([]);
    expect(await rank()).toBe(10);
    await ann.tabTo('Put this member back');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'The undo is done' }).getByText('put back', { exact: true }).waitFor();
    expect(await rank()).toBe(20);
    await page.keyboard.press('Escape');
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toMatch(/^(BUTTON|MAIN)$/);
    ann.expectNoErrors();
  });

  test('a key is paused and resumed after confirmation', async () => {
    await ann.go('keys');
    await ann.page.getByRole('button', { name: 'Key game', exact: true }).click();
    const paused = () =>
      scene.home.json<{ key: { state: string } }>('key', 'show', 'game').then(({ key }) => key.state);
    for (const [verb, state] of [
      ['Pause', 'paused'],
      ['Resume', 'active'],
    ] as const) {
      await ann.page.getByRole('button', { name: `${verb} game`, exact: true }).click();
      const dialog = ann.page.getByRole('dialog', { name: `${verb} game?` });
      await dialog.getByRole('button', { name: verb }).click();
      await ann.waitUntilVisible(ann.row('game').getByText(state));
      expect(await paused()).toBe(state);
    }
  });

  test('a suspension is lifted, with a reason', async () => {
    await scene.home.json('rank', 'suspend', '1005', '--for', '3d', '--reason', 'spam');
    await ann.go('suspensions');
    await ann.page.getByRole('button', { name: /^Lift/ }).click();
    await ann.page
      .getByRole('dialog')
      .getByText(/1005.* holds .* again/)
      .waitFor();
    await ann.page.getByLabel(/^Reason/).fill('appeal');
    await ann.page.getByRole('dialog').getByRole('button', { name: 'Lift' }).click();
    await ann.page.getByRole('dialog', { name: 'Done' }).getByRole('button', { name: 'Close' }).click();
    await ann.waitUntilVisible(ann.page.getByText('No member is suspended'));
    await ann.go('changes?user=1005');
    await ann.waitUntilVisible(ann.page.locator('td', { hasText: 'appeal' }).first());
    const shown = await ann.page.locator('tr.record').allInnerTexts();
    expect(shown[0]).toContain('lifted early');
    expect(shown[1]).toContain('suspended for 3 days');
  });

  test('a webhook is tested, and its target’s response is shown', async () => {
    await using sink = await startWebhookSink();
    writeFileSync(scene.home.path('hook.url'), sink.url);
    await scene.home.json('webhook', 'add', 'staff-log', '--url-file', 'hook.url');
    await ann.go('webhooks');
    await ann.page.getByRole('button', { name: 'Test staff-log' }).click();
    await ann.waitUntilVisible(ann.page.getByText(/^delivered in \d+ ms$/));
    sink.answers(500);
    await ann.page.getByRole('button', { name: 'Test staff-log' }).click();
    await ann.waitUntilVisible(ann.page.getByText(/500/));
    await ann.page.setViewportSize({ width: 360, height: 740 });
    const name = await ann.row('staff-log').getByRole('rowheader').boundingBox();
    const buttons = await ann.row('staff-log').getByRole('button').all();
    const boxes = await Promise.all(buttons.map((button) => button.boundingBox()));
    expect(new Set(boxes.map((box) => box?.y)).size).toBe(1);
    expect(boxes[0]?.y).toBeGreaterThanOrEqual((name?.y ?? 0) + (name?.height ?? 0));
    expect(await ann.fits()).toBe(true);
    await ann.page.setViewportSize({ width: 1360, height: 850 });
  });
});

const settings = {
  group: { ladder: [10, 20] },
  discord: {
    ...{ application: '1100000000000000001', public_key: 'ab'.repeat(32), server: '2200000000000000002' },
    ...{ commands: [{ role: '3300000000000000003', key: 'staff' }], api_base_url: 'http://127.0.0.1:9' },
  },
};
