import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostileTexts } from '../attack/hostile.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { Scene, Visitor, views } from './scene.ts';
import { browser } from './which-browser.ts';

describe.skipIf(browser === undefined)('the dashboard page', () => {
  let scene: Scene;
  let ann: Visitor;

  beforeAll(async () => {
    scene = await Scene.open();
    ann = await scene.operator();
  });
  afterAll(() => scene?.[Symbol.asyncDispose]());

  test('an empty history shows the next step', async () => {
    await ann.go('changes');
    await ann.page.getByText('rankd key create my-game').waitFor();
    for (const view of ['suspensions', 'webhooks']) {
      await ann.go(view);
      await expect(ann.page.locator('.empty code').first().textContent()).resolves.toMatch(
        /^rankd (rank suspend|webhook add) /,
      );
    }
    await ann.go('changes');
  });

  describe('login', () => {
    test('a link logs in and disappears from the address at once, and scripts cannot read the cookie', async () => {
      await using visitor = await scene.visitor();
      const link = await scene.link();
      await visitor.page.goto(link);
      await visitor.page.getByRole('heading', { level: 1, name: 'Set-up' }).waitFor();
      expect(visitor.page.url()).toBe(`${scene.origin}/`);
      expect(await visitor.page.evaluate(() => [document.cookie, history.length])).toEqual(['', expect.any(Number)]);
      const [cookie] = await visitor.context.cookies();
      expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' });
      await visitor.page.reload();
      await visitor.page.getByRole('heading', { level: 1, name: 'Set-up' }).waitFor();
      visitor.expectNoErrors();
    });

    test('a used link is refused, and the page explains how to get a new one', async () => {
      const link = await scene.link();
      await using first = await scene.visitor();
      await first.page.goto(link);
      await first.page.getByRole('heading', { level: 1, name: 'Set-up' }).waitFor();
      await using second = await scene.visitor();
      await second.page.goto(link);
      await second.page.getByRole('alert').waitFor();
      expect(await second.page.locator('code').allTextContents()).toContain('rankd dashboard');
      expect(await second.accessibilityProblems()).toEqual([]);
    });

    test('a link preview that fetches the address does not use up the link', async () => {
      const link = await scene.link();
      await fetch(link);
      await using visitor = await scene.visitor();
      await visitor.page.goto(link);
      await visitor.page.getByRole('heading', { level: 1, name: 'Set-up' }).waitFor();
    });

    test('a logout ends the session in every window', async () => {
      await using visitor = await scene.operator();
      const other = await visitor.context.newPage();
      await other.goto(scene.origin);
      await other.getByRole('heading', { level: 1, name: 'Set-up' }).waitFor();
      await visitor.page.getByRole('button', { name: 'Log out' }).click();
      await visitor.page.getByRole('heading', { name: 'You are not logged in' }).waitFor();
      await ann.waitUntilVisible(other.getByRole('heading', { name: 'You are not logged in' }));
    });
  });

  describe('a foreign page in the same browser', () => {
    let other: Server;
    let port: number;

    beforeAll(async () => {
      other = createServer((_, response) =>
        response.writeHead(200, { 'content-type': 'text/html' }).end('<p>another page'),
      );
      await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
      port = (other.address() as AddressInfo).port;
    });
    afterAll(() => other.close());

    const pages = {
      'on another port': () => `http://127.0.0.1:${port}/`,
      'on localhost': () => `http://localhost:${port}/`,
      'without an origin': () => 'data:text/html,<p>another page',
    };

    test.each(Object.entries(pages))('%s cannot pause a key by form or by script', async (_, address) => {
      const page = await ann.context.newPage();
      await page.goto(address());
      const target = `${scene.origin}/api/keys/pause`;
      const scripted = await page.evaluate(
        (url) =>
          fetch(url, { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"key":"game"}' }).then(
            ({ status }) => status,
            () => 'no answer',
          ),
        target,
      );
      expect([0, 'no answer']).toContain(scripted);
      const [answer] = await Promise.all([
        page.waitForResponse(target),
        page.evaluate((url) => {
          const form = document.createElement('form');
          Object.assign(form, { method: 'POST', action: url, enctype: 'text/plain' });
          const field = document.createElement('input');
          Object.assign(field, { name: '{"key":"game","x":"', value: '"}' });
          form.append(field);
          document.body.append(form);
          form.submit();
        }, target),
      ]);
      expect(answer.status()).toBe(403);
      await page.close();
      expect((await scene.home.json<{ key: { pausedAt: unknown } }>('key', 'show', 'game')).key.pausedAt).toBeNull();
    });

    test('cannot reach the page under a host name that an attacker points to this machine', async () => {
      const page = await ann.context.newPage();
      const answer = await page.goto(`http://rebound.localhost:${new URL(scene.origin).port}/`);
      expect(answer?.status()).toBe(421);
      expect(await page.locator('script').count()).toBe(0);
      await page.close();
    });
  });

  describe('live updates', () => {
    test('a change by a game appears within 2 s', async () => {
      await ann.go('changes');
      await scene.game({ rankeeName: 'Newcomer', command: ':promote' });
      await ann.waitUntilVisible(ann.row('Newcomer').filter({ hasText: 'applied' })); // at first, perhaps as pending
      await expect(ann.row('Newcomer').innerText()).resolves.toMatch(/Trainee[\s\S]*Officer[\s\S]*game[\s\S]*applied/);
    });

    test('a change by a command next to the daemon appears within 2 s', async () => {
      await scene.home.json('rank', 'set', '1002', '50', '--reason', 'for the test');
      await ann.waitUntilVisible(ann.page.locator('td', { hasText: 'for the test' }));
      ann.expectNoErrors();
    });

    test('a hidden page fetches nothing, and catches up once it is shown again', async () => {
      await using away = await scene.operator();
      await away.go('changes');
      await away.hide(true);
      const before = away.requests.length;
      await scene.game({ rankeeName: 'SeenLater', newRankId: 10 });
      await ann.waitUntilVisible(ann.row('SeenLater'));
      await scene.home.json('key', 'create', 'made-later');
      await ann.go('keys');
      await ann.waitUntilVisible(ann.row('made-later'));
      expect(away.requests.slice(before)).toEqual([]);
      await away.hide(false);
      await away.waitUntilVisible(away.row('SeenLater'));
    });

    test('after a burst of changes, the last one is at the top', async () => {
      await ann.go('changes');
      for (let round = 0; round < 30; round++)
        await scene.game({ newRankId: round % 2 === 0 ? 20 : 10, rankeeName: `Burst${round}` });
      await ann.waitUntilVisible(ann.row('Burst29'));
      await expect(ann.page.locator('tbody tr').first().innerText()).resolves.toContain('Burst29');
      expect(ann.requests.filter((url) => url.includes('/api/changes')).length).toBeLessThan(20);
    });
  });

  describe('a search', () => {
    test('has a separate address, finds changes, and reports if nothing matches', async () => {
      await ann.go('changes?user=1002&state=applied');
      await expect.poll(() => ann.page.locator('tbody tr.record').count()).toBe(1);
      await ann.page.getByLabel('Member').fill('Nobody');
      await ann.page.keyboard.press('Enter');
      await ann.waitUntilVisible(ann.page.getByText('No changes match'));
      expect(new URL(ann.page.url()).hash).toBe('#/changes?user=Nobody&state=applied');
    });

    test('reports an invalid date next to its field, and preserves the typed text', async () => {
      await ann.go('changes');
      await ann.page.getByLabel('Since').fill('yesterday');
      await ann.page.keyboard.press('Enter');
      await ann.waitUntilVisible(ann.page.locator('.field:has([name=since]) [role=alert]'));
      expect(await ann.page.getByLabel('Since').inputValue()).toBe('yesterday');
      expect(await ann.page.getByLabel('Since').getAttribute('aria-invalid')).toBe('true');
      await ann.go('changes');
      ann.ignoreErrors(/400/);
    });
  });

  test('an undo of all search results undoes exactly the changes that its preview showed, and shows its progress', async () => {
    await scene.home.json('rank', 'set', '1006', '50');
    await scene.home.json('rank', 'set', '1007', '20');
    await ann.go('changes?by=cli&since=1h&state=applied');
    const { page } = ann;
    const shown = page.waitForResponse(/\/api\/undo\?/);
    await page.getByRole('button', { name: 'Undo all of these…' }).click();
    const { ids } = (await (await shown).json()) as { ids: string[] };
    const posted = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/api/undo'));
    const progress = page.getByRole('progressbar', { name: 'Progress of the undo' }).waitFor();
    // Holds the run until the progress bar is visible, because it could otherwise restore three members before that.
    await page.route(/\/api\/run\?/, (route) => progress.then(() => route.continue()));
    await page.getByRole('button', { name: 'Put 3 members back' }).dblclick();
    expect((await posted).postDataJSON()).toEqual({ ids });
    await progress;
    expect(ann.requests.filter((url) => url.endsWith('/api/undo'))).toHaveLength(1);
    await page
      .getByRole('dialog', { name: 'The undo is done' })
      .getByText('put back', { exact: true })
      .first()
      .waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    const rank = (id: string) =>
      scene.home.json<{ member: { rank: number } }>('rank', 'show', id).then(({ member }) => member.rank);
    expect(await Promise.all(['1002', '1006', '1007'].map(rank))).toEqual([20, 20, 50]);
  });

  test('times are shown in words, with the exact time on hover', async () => {
    await ann.go('changes');
    const time = ann.page.locator('tbody time:visible').first();
    expect(await time.textContent()).toMatch(/^(just now|\d+ (s|min) ago)$/);
    expect(Date.parse((await time.getAttribute('datetime')) ?? '')).toBeGreaterThan(Date.now() - 600_000);
    expect(await time.getAttribute('title')).toMatch(/\b20\d\d\b.*\d\d:\d\d:\d\d UTC$/);
  });

  test('keys beyond the first page are loaded on demand and stay live', async () => {
    await scene.home.json('key', 'create', 'newest');
    const { keys } = await scene.home.json<{ keys: object[] }>('key', 'list');
    await ann.page.route(/\/api\/keys(\?|$)/, (route) => {
      const url = new URL(route.request().url());
      url.searchParams.set('limit', `${keys.length - 1}`); // simulates more keys than fit on one page
      return route.continue({ url: url.href });
    });
    await ann.go('changes');
    await ann.go('keys');
    await ann.waitUntilVisible(ann.page.getByText(`the oldest ${keys.length - 1}`));
    expect(await ann.row('newest').count()).toBe(0);
    await ann.page.getByRole('button', { name: 'More keys' }).click();
    await ann.waitUntilVisible(ann.row('newest'));
    expect(await ann.page.getByRole('button', { name: 'More keys' }).count()).toBe(0);
    expect(await ann.page.locator('tbody tr').count()).toBe(keys.length);
    await scene.home.json('key', 'revoke', 'newest', '-y');
    await ann.waitUntilVisible(ann.row('newest').getByText('revoked'));
    await ann.page.unroute(/\/api\/keys(\?|$)/);
    ann.expectNoErrors();
  });

  test('on a simulated group, the first view is the set-up of a real one, and simulated keys do not count as a step', async () => {
    await using visitor = await scene.operator();
    await visitor.page.getByRole('heading', { name: '1. An account and a key on Roblox' }).waitFor();
    const step = (words: string) => visitor.page.locator('.setup li li', { hasText: words });
    expect(await step('Create a key').innerText()).toMatch(/^to do:/);
    expect(await step('Run rankd init').innerText()).toMatch(/^to do:/);
    await visitor.page.goto(`${scene.origin}/#/changes`);
    await visitor.page.getByRole('heading', { level: 1, name: 'Changes' }).waitFor();
  });

  test.each([
    ['light', 1360],
    ['dark', 1360],
    ['light', 360],
    ['light', 3840],
  ] as const)(
    'each view in %s, %s px wide, has no errors, no foreign requests, no accessibility problems, and nothing cut off',
    async (colorScheme, width) => {
      await using visitor = await scene.operator({ colorScheme, viewport: { width, height: 800 } });
      for (const view of views) {
        await visitor.go(view);
        if (view === 'chart') await visitor.page.locator('canvas').waitFor();
        expect(await visitor.fits(), view).toBe(true);
        if (width < 3840) expect(await visitor.accessibilityProblems(), view).toEqual([]);
      }
      visitor.expectNoErrors();
      expect(visitor.requests.filter((url) => new URL(url).origin !== scene.origin)).toEqual([]);
    },
  );

  test('the legend has the same colors as the bars, in light and dark', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await using visitor = await scene.operator({ colorScheme });
      await visitor.go('chart');
      const colors = await visitor.page
        .locator('.legend dt')
        .evaluateAll((names) => names.map((name) => getComputedStyle(name, '::before').backgroundColor));
      const bars = await visitor.page.locator('main').evaluate((element) =>
        ['--bar-up', '--bar-down', '--bar-no'].map((name) => {
          const probe = document.createElement('i');
          probe.style.color = `var(${name})`;
          element.append(probe);
          const { color } = getComputedStyle(probe);
          probe.remove();
          return color;
        }),
      );
      expect(colors).toEqual(bars);
      expect(new Set(colors).size).toBe(3);
      expect(colors).not.toContain('rgba(0, 0, 0, 0)');
    }
  });

  test('a browser with an invalid language tag shows the chart, and dates in English', async () => {
    await scene.game({ rankeeName: 'Charted', newRankId: 10 });
    await using visitor = await Visitor.open(await scene.opened.browser.newContext({ timezoneId: 'UTC' }));
    await visitor.page.addInitScript(() => {
      const language = { configurable: true, get: () => 'en-US@posix' };
      Object.defineProperties(Navigator.prototype, { language, languages: { get: () => ['en-US@posix'] } });
    });
    await visitor.page.goto(await scene.link());
    await visitor.go('chart');
    await visitor.page.locator('canvas').waitFor();
    await using german = await scene.operator({ locale: 'de-DE' });
    await german.go('changes');
    const time = german.page.locator('tbody time').first();
    expect(await time.getAttribute('title')).toMatch(/day\b/);
    for (const one of [visitor, german]) one.expectNoErrors();
  });

  test('a view that cannot be rendered shows an error, and the other views still work', async () => {
    await using visitor = await scene.operator();
    await visitor.page.route(/\/api\/chart/, (route) => route.fulfill({ json: { v: 1, hours: null, days: null } }));
    await visitor.page.evaluate(() => {
      location.hash = '#/chart';
    });
    await visitor.page.getByRole('alert').getByText('This view could not be shown').waitFor();
    await visitor.go('keys');
    expect(await visitor.page.getByRole('alert').count()).toBe(0);
  });

  test('on a phone, every tab is visible, and the chart asks for a tap', async () => {
    await scene.game({ rankeeName: 'Charted', newRankId: 20 });
    await using visitor = await scene.operator({
      viewport: { width: 360, height: 800 },
      hasTouch: true,
      isMobile: true,
    });
    const tabs = await visitor.page.locator('.views a').all();
    expect(tabs).toHaveLength(views.length);
    for (const tab of tabs) await tab.click({ trial: true });
    expect(await visitor.page.locator('.views').evaluate((list) => list.scrollWidth - list.clientWidth)).toBe(0);
    await visitor.go('chart');
    await visitor.page.getByText('Tap a bar to read it.').waitFor();
  });

  test('on a real group, simulated changes and keys are marked, and simulated changes cannot be undone', async () => {
    await using system = await openCloudHome();
    const { home } = system;
    const env = { RANKD_PLATFORM_KIND: 'simulated' };
    await home.here(['rank', 'set', '1001', '20'], { env });
    await home.here(['key', 'create', 'trial'], { env });
    await using _daemon = await system.serve({ RANKD_DASHBOARD_PORT: '0' });
    await home.json('rank', 'set', '1001', '20');
    const { url } = await home.json<{ url: string }>('dashboard');
    for (const width of [1360, 360]) {
      await using visitor = await scene.visitor({ viewport: { width, height: 800 } });
      await visitor.page.goto(width === 1360 ? url : (await home.json<{ url: string }>('dashboard')).url);
      const [real, simulated] = [visitor.page.locator('tr.record').nth(0), visitor.page.locator('tr.record').nth(1)];
      await simulated.getByText('simulated', { exact: true }).waitFor();
      expect(await real.innerText()).not.toContain('simulated');
      const tones = () => Promise.all([real, simulated].map((row) => row.locator('.chip').getAttribute('class')));
      expect(await tones()).toEqual(['chip good', 'chip quiet']);
      for (const [row, undos] of [
        [simulated, 0],
        [real, 1],
      ] as const) {
        await row.locator('button.opener').click();
        await visitor.page.locator('tr.more .details').waitFor();
        expect(await visitor.page.getByRole('button', { name: 'Undo…' }).count()).toBe(undos);
        await row.locator('button.opener').click();
      }
      await visitor.go('keys');
      expect(await visitor.row('trial').locator('.chip').innerText()).toBe('simulated');
      expect(await visitor.row('trial').innerText()).toContain('rankd key adopt trial');
      expect(await visitor.row('game').locator('.chip').innerText()).toBe('active');
      visitor.expectNoErrors();
    }
  });

  test('the animation in README has at most one cursor, on the line that is being typed', async () => {
    const page = await ann.context.newPage();
    const { TerminalPicture } = await import('../tools/terminal-picture.ts');
    const picture = new TerminalPicture({ columns: 80, rows: 12 });
    for (const command of ['rankd key list', 'rankd history list', 'rankd status']) {
      picture.type(command);
      picture.print('one line\r\nanother\r\n');
    }
    await page.goto(`data:image/svg+xml,${encodeURIComponent(picture.svg('A terminal'))}`);
    const cursors = await page.evaluate(() => {
      const animations = document.getAnimations();
      const end = Number(animations[0]?.effect?.getComputedTiming().duration);
      return Array.from({ length: 100 }, (_, index) => {
        for (const animation of animations) animation.currentTime = (end * index) / 100;
        const covers = [...document.querySelectorAll('.c')];
        return covers.filter((cover) => getComputedStyle(cover).visibility === 'visible').length;
      });
    });
    expect(new Set(cursors)).toEqual(new Set([0, 1]));
    await page.close();
  });

  test('200 hostile names in each column are shown as plain text', async () => {
    const names = fc.sample(hostileName, 200);
    for (const [index, name] of names.entries())
      await scene.game({
        ...{ rankeeName: name, rankerName: name, rankerId: 2001, command: name, oldRankName: name, prefix: name },
        newRankId: index % 2 === 0 ? 20 : 10,
      });
    await ann.go('changes');
    for (let page = 1; page < 5; page++) {
      await ann.page.getByRole('button', { name: 'Older changes' }).click();
      await ann.settled();
    }
    expect(await ann.page.locator('tr.record').count()).toBeGreaterThanOrEqual(200);
    const shown = await ann.page.locator('tr.record').evaluateAll((rows) => rows.map((row) => row.textContent));
    for (const name of names) expect(shown.some((text) => text.includes(name.slice(0, 30).trim()))).toBe(true);
    for (const index of [0, 60, 120]) {
      await ann.page.locator('button.opener').nth(index).click();
      await ann.page.locator('tr.more .details').waitFor();
    }
    expect(
      await ann.page
        .locator('main :is(img, script, iframe, object, b, style, base, meta, link), [onerror], [data-hostile]')
        .count(),
    ).toBe(0);
    expect(await ann.fits()).toBe(true);
    ann.expectNoErrors();
  });

  test('the page and the data of all its views weigh at most 110 KB', async () => {
    await using visitor = await scene.visitor();
    const network = await visitor.context.newCDPSession(visitor.page);
    await network.send('Network.enable');
    let bytes = 0;
    network.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength;
    });
    await visitor.page.goto(await scene.link());
    await visitor.settled();
    for (const view of views) await visitor.go(view);
    await visitor.page.locator('body').waitFor();
    expect(bytes).toBeGreaterThan(20_000);
    expect(bytes).toBeLessThanOrEqual(110_000);
  });

  test('the first paint is within 100 ms', async () => {
    await using visitor = await scene.operator();
    const paints: number[] = [];
    // One fast attempt is enough, because other tests may slow down the machine.
    while (paints.length < 40 && Math.min(...paints) >= 100) {
      await visitor.page.reload();
      paints.push(await visitor.page.evaluate(firstContentfulPaint));
    }
    expect(Math.min(...paints)).toBeLessThan(100);
  });

  test('the page shows within 2 s that the daemon was killed, and then turns gray', async () => {
    await scene.daemon.stop('SIGKILL');
    await ann.waitUntilVisible(ann.page.getByText(/connection lost/));
    await ann.page.getByText(/no response since \d\d:\d\d:\d\d/).waitFor({ timeout: 30_000 });
    expect(await ann.page.locator('.away').count()).toBe(1);
  });

  test('after a restart, a logged-in user is asked to log in again', async () => {
    await scene.restart();
    await ann.page.getByRole('heading', { name: 'You are not logged in' }).waitFor({ timeout: 30_000 });
  });
});

const hostileName = fc.oneof(
  fc.constantFrom(...hostileTexts.filter((text) => text.trim() !== '' && text.length <= 1_000)),
  fc.constantFrom(
    '<img src=x onerror=alert(1)>',
    '"><b data-hostile>',
    '<svg onload=alert(1)>',
    '<iframe srcdoc="<script>alert(1)</script>">',
    'javascript:alert(1)',
    '</td></tr></table><style>*{display:none}</style>',
    '{{constructor.constructor("alert(1)")()}}',
    '&lt;b&gt;',
  ),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
);

/** Runs in the page. Resolves with the time of the first contentful paint, in ms since the navigation began. */
function firstContentfulPaint(): Promise<number> {
  return new Promise((resolve) => {
    const watch = new PerformanceObserver((list) => {
      for (const { startTime } of list.getEntriesByName('first-contentful-paint')) resolve(startTime);
    });
    watch.observe({ type: 'paint', buffered: true });
  });
}
