import type { DashboardConfig } from '../../src/config/config.ts';
import { Dashboard, type DashboardOptions } from '../../src/dashboard/server/dashboard.ts';
import type { SessionKind } from '../../src/dashboard/server/sessions.ts';
import { daemonStatus } from '../../src/usecases/upkeep/status-document.ts';
import { openTestApp, type TestApp, type TestAppOptions } from './open-test-app.ts';
import { PageVisitor } from './page-visitor.ts';

/** A daemon in this process with its page, and visitors to the page. */
export interface TestPage extends AsyncDisposable {
  app: TestApp;
  dashboard: Dashboard;
  options: DashboardOptions;
  /** Returns a visitor who has a link but has not logged in yet. */
  withLink(kind?: SessionKind): Promise<PageVisitor>;
  loggedIn(kind?: SessionKind): Promise<PageVisitor>;
}

export async function openTestPage({
  dashboard: config = {},
  pageFolder = '/nowhere',
  ...options
}: TestAppOptions & { dashboard?: Partial<DashboardConfig>; pageFolder?: string } = {}): Promise<TestPage> {
  const app = await openTestApp(options);
  const settings = { enabled: false, host: '127.0.0.1', port: 0, url: undefined, path: undefined, ...config };
  const { trustedProxies = ['127.0.0.0/8'] } = options.config?.server ?? {};
  const page = { live: app.live, config: settings, trustedProxies, pageFolder, typedAs: 'rankd', publicUrl: undefined };
  const given = { ...page, status: async () => statusOf(app) };
  const dashboard = new Dashboard(given);
  const withLink = async (kind?: SessionKind) => new PageVisitor((await dashboard.link('cli:ann@host', kind)).url);
  return {
    ...{ app, dashboard, options: given, withLink },
    async loggedIn(kind) {
      const visitor = await withLink(kind);
      await visitor.logIn();
      return visitor;
    },
    async [Symbol.asyncDispose]() {
      await dashboard[Symbol.asyncDispose]();
      await app.close();
    },
  };
}

function statusOf({ app, url }: TestApp): ReturnType<typeof daemonStatus> {
  const platform = { kind: 'simulated', groupId: undefined };
  const config = { platform, server: { publicUrl: undefined } } as never;
  return daemonStatus({
    ...{ app, live: { config, file: undefined, needRestart: [] }, url, metricsUrl: undefined },
    ...{ process: { pid: 1, nodeVersion: '24' }, storeProblem: undefined, workspaceActive: true, acceptsKeys: true },
    ...{ webhooks: [], stuckHolds: [], started: { at: 0, monotonic: 0 }, problems: [], dashboard: null },
  });
}
