import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import type { AxeResults } from 'axe-core';
import type { BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { createPostgresDatabase, type PostgresDatabase } from '../support/postgres-database.ts';
import { CliHome } from '../support/run-cli.ts';
import { isOnPostgres } from '../support/store-of-app.ts';
import { type OpenBrowser, openBrowser } from './open-browser.ts';

export const views = ['changes', 'rank', 'suspensions', 'keys', 'webhooks', 'chart', 'pace', 'setup'] as const;

/** A daemon with its dashboard, and a browser. All tests in a file share one scene. */
export class Scene implements AsyncDisposable {
  readonly home: CliHome;
  readonly opened: OpenBrowser;
  daemon: DaemonProcess;
  /** e.g. `http://127.0.0.1:7266` */
  origin = '';
  path = '';
  /** A game's key for place 1. */
  key = '';
  readonly #database: PostgresDatabase | undefined;

  private constructor(
    home: CliHome,
    parts: { opened: OpenBrowser; daemon: DaemonProcess; database: PostgresDatabase | undefined },
  ) {
    this.home = home;
    this.opened = parts.opened;
    this.daemon = parts.daemon;
    this.#database = parts.database;
  }

  /** On PostgreSQL, the page is served on the API's port, below a path. */
  static async open(settings: Record<string, unknown> = {}): Promise<Scene> {
    const home = new CliHome();
    const database = isOnPostgres ? await createPostgresDatabase() : undefined;
    const own =
      database === undefined
        ? { dashboard: { port: await freePort() } }
        : { dashboard: { path: '/page' }, store: { url: database.url } };
    const platform = { platform: { kind: 'simulated' }, webhooks: { allow_private: ['127.0.0.1'] } };
    writeFileSync(home.path('rankd.yaml'), JSON.stringify({ ...platform, ...own, ...settings }));
    const [opened, daemon] = await Promise.all([openBrowser(), DaemonProcess.start(home)]);
    const scene = new Scene(home, { opened, daemon, database });
    scene.key = await home.createKey();
    return scene;
  }

  async restart(): Promise<void> {
    await this.daemon.stop('SIGKILL');
    this.daemon = await DaemonProcess.start(this.home);
    await this.link();
  }

  async link(): Promise<string> {
    const { url } = await this.home.json<{ url: string }>('dashboard');
    this.origin = new URL(url).origin;
    this.path = new URL('.', url).pathname;
    return url;
  }

  /** Requests a rank change as a game does, for member 1001 unless `body` names another. */
  async game(body: Record<string, unknown>): Promise<void> {
    const { status, text } = await this.daemon.rank(this.key, body);
    if (status >= 500 || status === 429) throw new Error(text);
  }

  async visitor(options: BrowserContextOptions = {}): Promise<Visitor> {
    const context = await this.opened.browser.newContext({ locale: 'en-GB', timezoneId: 'UTC', ...options });
    return await Visitor.open(context);
  }

  async operator(options?: BrowserContextOptions): Promise<Visitor> {
    const visitor = await this.visitor(options);
    await visitor.page.goto(await this.link());
    await visitor.page.getByRole('heading', { level: 1, name: 'Set-up' }).waitFor();
    return visitor;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.daemon[Symbol.asyncDispose]();
    await this.#database?.[Symbol.asyncDispose]();
    await this.opened[Symbol.asyncDispose]();
    this.home[Symbol.dispose]();
  }
}

/** A window that records its page's errors and requests. */
export class Visitor implements AsyncDisposable {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Errors from scripts, the console and the content security policy, warnings in the console, and native dialogs. */
  readonly errors: string[] = [];
  readonly requests: string[] = [];

  private constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
    page.on('pageerror', (error) => this.errors.push(`${error}`));
    page.on('dialog', (dialog) => {
      this.errors.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) this.errors.push(message.text());
    });
    page.on('request', (request) => this.requests.push(request.url()));
  }

  static async open(context: BrowserContext): Promise<Visitor> {
    context.setDefaultTimeout(10_000);
    const page = await context.newPage();
    const visitor = new Visitor(context, page);
    await page.exposeFunction('reportViolation', (what: string) => visitor.errors.push(`policy: ${what}`));
    await page.addInitScript(() =>
      document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
        (window as unknown as { reportViolation(what: string): void }).reportViolation(
          `${violatedDirective} ${blockedURI}`,
        );
      }),
    );
    return visitor;
  }

  async go(view: string): Promise<void> {
    await this.page.evaluate(
      (address) =>
        new Promise<void>((resolve) => {
          if (location.hash === address) return resolve();
          // The page handles the event first, so the previous view is gone when the timeout ends.
          addEventListener('hashchange', () => setTimeout(resolve), { once: true });
          location.hash = address;
        }),
      `#/${view}`,
    );
    const title = view.replace(/[?].*/, '').replace('setup', 'set-up');
    await this.page.getByRole('heading', { level: 1, name: new RegExp(`^${title}$`, 'i') }).waitFor();
    await this.settled();
  }

  async settled(): Promise<void> {
    await this.page.locator('main .sheet').first().waitFor();
    await this.page.locator('[aria-busy="true"]').waitFor({ state: 'detached' });
  }

  async accessibilityProblems(): Promise<string[]> {
    const { default: axe } = await import('axe-core');
    const { violations } = (await this.page.evaluate(`${axe.source}; axe.run(document)`)) as AxeResults;
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, any }) => `${id}: ${html} ${any[0]?.message ?? ''}`),
    );
  }

  /** True if neither the page nor any sheet or dialog overflows on the right. */
  async fits(): Promise<boolean> {
    return await this.page.evaluate(() =>
      [document.documentElement, ...document.querySelectorAll('.sheet, dialog .body')].every(
        ({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth,
      ),
    );
  }

  /**
   * Waits for content that must appear within 2 s of its cause. Counts each check as at most 50 ms, because a busy
   * machine may delay both the page and the daemon.
   */
  async waitUntilVisible(content: Locator): Promise<void> {
    let passedMs = 0;
    while (!(await content.isVisible())) {
      if (passedMs > 2_000) throw new Error(`Not visible within 2 s: ${content}`);
      const begunAt = performance.now();
      await Promise.all([
        this.page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 20))),
        fetch(this.page.url())
          .then((answer) => answer.arrayBuffer())
          .catch(() => undefined), // the daemon may have been killed
      ]);
      passedMs += Math.min(50, performance.now() - begunAt);
    }
  }

  row(text: string): Locator {
    return this.page.locator('tbody tr', { hasText: text }).first();
  }

  async tabTo(name: string): Promise<void> {
    for (let presses = 0; presses < 100; presses++) {
      await this.page.keyboard.press('Tab');
      const focused = await this.page.evaluate(() => {
        const element = document.activeElement;
        return element?.getAttribute('aria-label') ?? element?.textContent?.trim();
      });
      if (focused === name) return;
    }
    throw new Error(`Tab does not lead to ${name}`);
  }

  /**
   * Makes the page believe that its window is covered or shown again, because a headless browser can't cover windows.
   */
  async hide(isHidden: boolean): Promise<void> {
    await this.page.evaluate((hidden) => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
      document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
  }

  /** Removes matching errors, which the test has caused on purpose. */
  ignoreErrors(error: RegExp): void {
    const others = this.errors.filter((one) => !error.test(one));
    this.errors.splice(0, this.errors.length, ...others);
  }

  expectNoErrors(): void {
    expect(this.errors).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.context.close();
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
