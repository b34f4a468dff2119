import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostileTexts } from '../attack/hostile.ts';
import { Scene, type Visitor } from './scene.ts';
import { browser } from './which-browser.ts';

/** Within this, what happened is to be seen. */
const soon = { timeout: 2_000 };

describe.skipIf(browser === undefined)('the page of the dashboard', () => {
  let scene: Scene;
  let ann: Visitor;

  beforeAll(async () => {
    scene = await Scene.open();
    ann = await scene.operator();
  }, 60_000);
  afterAll(() => scene?.[Symbol.asyncDispose]());

  describe('log-in', () => {
    test('the link logs in, and is out of the address at once; its cookie is invisible to scripts', async () => {
      await using visitor = await scene.visitor();
      const link = await scene.link();
      await visitor.page.goto(link);
      await visitor.page.getByRole('heading', { level: 1, name: 'Changes' }).waitFor();
      expect(visitor.page.url()).toBe(`${scene.origin}/`);
      expect(await visitor.page.evaluate(() => [document.cookie, history.length])).toEqual(['', expect.any(Number)]);
      const [cookie] = await visitor.context.cookies();
      expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' });
      await visitor.page.reload();
      await visitor.page.getByRole('heading', { level: 1, name: 'Changes' }).waitFor();
      visitor.expectNoComplaint();
    });

    test('a link that was used is refused, and the page says how to get another', async () => {
      const link = await scene.link();
      await using first = await scene.visitor();
      await first.page.goto(link);
      await first.page.getByRole('heading', { level: 1, name: 'Changes' }).waitFor();
      await using second = await scene.visitor();
      await second.page.goto(link);
      await second.page.getByRole('alert').waitFor();
      expect(await second.page.locator('code').allTextContents()).toContain('rankd dashboard');
      expect(await second.hindrances()).toEqual([]);
    });

    test('a preview that fetches the address of the link uses nothing up', async () => {
      const link = await scene.link();
      await fetch(link);
      await using visitor = await scene.visitor();
      await visitor.page.goto(link);
      await visitor.page.getByRole('heading', { level: 1, name: 'Changes' }).waitFor();
    });

    test('who logs out is out, in each window', async () => {
      await using visitor = await scene.operator();
      const other = await visitor.context.newPage();
      await other.goto(scene.origin);
      await other.getByRole('heading', { level: 1, name: 'Changes' }).waitFor();
      await visitor.page.getByRole('button', { name: 'Log out' }).click();
      await visitor.page.getByRole('heading', { name: 'You are not logged in' }).waitFor();
      await other.getByRole('heading', { name: 'You are not logged in' }).waitFor(soon);
    });
  });

  describe('another page of the same browser', () => {
    test('a name that an attacker lets lead to this machine is answered nothing', async () => {
      const page = await ann.context.newPage();
      const answer = await page.goto(`http://rebound.localhost:${new URL(scene.origin).port}/`);
      expect(answer?.status()).toBe(421);
      expect(await page.locator('script').count()).toBe(0);
      await page.close();
    });
  });

  describe('live', () => {
    test('a change by a game shows within 2 s', async () => {
      await ann.go('changes');
      await scene.game({ rankeeName: 'Newcomer', command: ':promote' });
      await ann.row('Newcomer').waitFor(soon);
      await expect(ann.row('Newcomer').innerText()).resolves.toMatch(/Trainee[\s\S]*Officer[\s\S]*game[\s\S]*applied/);
    });

    test('a change by a command beside the daemon shows within 2 s', async () => {
      await scene.home.json('rank', 'set', '1002', '50', '--reason', 'for the test');
      await ann.page.locator('td', { hasText: 'for the test' }).waitFor(soon);
      ann.expectNoComplaint();
    });

    test('what was fetched is not older than what happened meanwhile: a burst ends with its last change on top', async () => {
      await ann.go('changes');
      for (let round = 0; round < 30; round++)
        await scene.game({ newRankId: round % 2 === 0 ? 20 : 10, rankeeName: `Burst${round}` });
      await ann.row('Burst29').waitFor(soon);
      await expect(ann.page.locator('tbody tr').first().innerText()).resolves.toContain('Burst29');
      expect(ann.requests.filter((url) => url.includes('/api/changes')).length).toBeLessThan(20);
    });
  });

  describe('a search', () => {
    test('has an address, finds, and says so if nothing matches', async () => {
      await ann.go('changes?user=1002&state=applied');
      expect(await ann.page.locator('tbody tr.record').count()).toBe(1);
      await ann.page.getByLabel('Member').fill('Nobody');
      await ann.page.keyboard.press('Enter');
      await ann.page.getByText('No change matches').waitFor(soon);
      expect(new URL(ann.page.url()).hash).toBe('#/changes?user=Nobody&state=applied');
    });

    test('a wrong date is told beside its field, and what was typed stays', async () => {
      await ann.go('changes');
      await ann.page.getByLabel('Since').fill('yesterday');
      await ann.page.keyboard.press('Enter');
      await ann.page.locator('.field:has([name=since]) [role=alert]').waitFor(soon);
      expect(await ann.page.getByLabel('Since').inputValue()).toBe('yesterday');
      expect(await ann.page.getByLabel('Since').getAttribute('aria-invalid')).toBe('true');
      await ann.go('changes');
      ann.forget(/400/);
    });
  });

  test('200 hostile names in each column are text, and nothing else', async () => {
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
    ann.expectNoComplaint();
  });

  test('the first paint comes within 100 ms', async () => {
    await using visitor = await scene.operator();
    const paints: number[] = [];
    // The machine may be busy with other tests: it is enough that it can.
    while (paints.length < 12 && Math.min(...paints) >= 100) {
      await visitor.page.reload();
      paints.push(await visitor.page.evaluate(firstPaint));
    }
    expect(Math.min(...paints)).toBeLessThan(100);
  });

  test('a daemon that was killed shows within 2 s, and its page greys', async () => {
    await scene.daemon.stop('SIGKILL');
    await ann.page.getByText(/connection lost/).waitFor(soon);
    await ann.page.getByText(/no answer since \d\d:\d\d:\d\d/).waitFor({ timeout: 8_000 });
    expect(await ann.page.locator('.away').count()).toBe(1);
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

/** In the page: when something was first painted, in milliseconds after the address was entered. */
function firstPaint(): Promise<number> {
  return new Promise((resolve) => {
    const watch = new PerformanceObserver((list) => {
      for (const { startTime } of list.getEntriesByName('first-contentful-paint')) resolve(startTime);
    });
    watch.observe({ type: 'paint', buffered: true });
  });
}
