import { asRankdError } from '../base/errors.ts';
import type { LinkOutcome } from '../control/control.ts';
import type { Dashboard, DashboardOptions } from '../dashboard/server/dashboard.ts';

/** The operator's page. It is loaded on first use, so it costs nothing for operators who never use it. */
export class LazyDashboard implements AsyncDisposable {
  readonly #options: DashboardOptions;
  #loading: Promise<Dashboard> | undefined;
  #dashboard: Dashboard | undefined;

  constructor(options: DashboardOptions) {
    this.#options = options;
  }

  get standing(): Dashboard['standing'] {
    return this.#dashboard?.standing ?? null;
  }

  /** Throws like `Dashboard.open`. */
  async openIfEnabled(): Promise<void> {
    if (this.#options.config.enabled) await (await this.#load()).open();
  }

  /** Never rejects. */
  async link(by: string): Promise<LinkOutcome> {
    try {
      return { state: 'made', ...(await (await this.#load()).link(by)) };
    } catch (cause) {
      const { code, message, hint } = asRankdError(cause);
      return { state: 'refused', code, message, hint };
    }
  }

  async logAllOut(by: string): Promise<{ sessions: number }> {
    return { sessions: (await this.#dashboard?.logAllOut(by)) ?? 0 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#loading?.catch(() => undefined))?.[Symbol.asyncDispose]();
  }

  #load(): Promise<Dashboard> {
    this.#loading ??= import('../dashboard/server/dashboard.ts').then(({ Dashboard }) => {
      this.#dashboard = new Dashboard(this.#options);
      return this.#dashboard;
    });
    return this.#loading;
  }
}
