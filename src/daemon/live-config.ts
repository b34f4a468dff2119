import type { ApplyOptions, ServedApp } from '../app.ts';
import { asRankdError, isRankdError, RankdError } from '../base/errors.ts';
import { type ChangedSettings, changedSettings } from '../config/compare.ts';
import type { Config } from '../config/config.ts';
import type { LoadedConfig } from '../config/load.ts';
import { ConfigError } from '../config/problem.ts';
import type { ReloadOutcome } from '../control/control.ts';
import { callWithin } from '../ports/platform.ts';
import type { DaemonContext } from '../usecases/daemon-context.ts';
import { declareConfigured } from '../usecases/declare-configured.ts';
import { checkGroup, credentialWarnings } from '../usecases/group/check-group.ts';
import { storeServedGroup } from '../usecases/group/served-group.ts';
import { auditReload } from '../usecases/upkeep/operator-events.ts';

interface LiveConfigOptions {
  app: ServedApp;
  started: LoadedConfig;
  load: () => Promise<LoadedConfig>;
  /** Called with each applied configuration. Resolves with warnings for the operator, one sentence each. */
  onApplied: (config: Config) => Promise<string[]>;
}

const credentialTimeoutMs = 5_000;

/** Applies a new configuration to the running daemon: either all settings that need no restart, or none. */
export class LiveConfig implements AsyncDisposable {
  readonly #options: LiveConfigOptions;
  #loaded: LoadedConfig;
  #needRestart: string[] = [];
  #last: Promise<unknown> = Promise.resolve();
  #isRefused = false;
  #isClosing = false;

  constructor(options: LiveConfigOptions) {
    this.#options = options;
    this.#loaded = options.started;
  }

  get config(): Config {
    return this.#loaded.config;
  }

  get loaded(): LoadedConfig {
    return this.#loaded;
  }

  /** The file that a reload would read; `undefined` if there is none. */
  get file(): string | undefined {
    return this.#loaded.fileNow();
  }

  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Settings that have changed since the daemon started but take effect only after a restart. */
  get needRestart(): string[] {
    return this.#needRestart;
  }

  /**
   * Runs one reload at a time. Records the outcome in the log and the audit log, unless the daemon is stopping. Never
   * rejects.
   */
  reload(by: string, options?: ApplyOptions): Promise<ReloadOutcome> {
    const outcome = this.#last.then(() => this.#applyConfig(by, options));
    this.#last = outcome;
    return outcome;
  }

  /**
   * Declares the configuration's keys and webhooks again, for example after another daemon has ended. Never rejects.
   */
  redeclare(): Promise<void> {
    const declared = this.#last.then(async () => {
      const { current } = this.#options.app;
      if (this.#isClosing) return;
      await declareConfigured(current, this.config).catch((error) =>
        current.log.error({ err: error }, 'the keys and webhooks of the configuration could not be declared again'),
      );
    });
    this.#last = declared;
    return declared;
  }

  /** Waits for the reload in progress, and refuses further ones. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    await this.#last;
  }

  async #applyConfig(by: string, options?: ApplyOptions): Promise<ReloadOutcome> {
    const { app, started, load, onApplied } = this.#options;
    const before = this.#loaded;
    if (this.#isClosing) return refusal(new RankdError('shutting_down', 'The daemon is stopping.'));
    try {
      const after = await load();
      let stray: string[] = [];
      const check = async (candidate: DaemonContext) => {
        stray = await checkGroup(candidate);
        stray.push(...(await declareConfigured(candidate, after.config)));
      };
      await app.applyConfig(after.config, check, options);
      this.#loaded = after;
      this.#isRefused = false;
      await storeServedGroup(app.current, after).catch((error) =>
        app.current.log.error({ err: error }, 'the served group could not be stored'),
      );
      const notes = await onApplied(after.config).catch((error) => [asRankdError(error).message]);
      const changed = changedSettings({ started, before, after });
      this.#needRestart = changed.needRestart.map(({ name }) => name);
      await recordApplied(app.current, { by, file: fileOf(after) }, changed);
      const warnings = [...after.warnings, ...stray, ...notes, ...(await checkCredential(app.current))];
      return { state: 'applied', file: after.file ?? null, warnings, ...changed };
    } catch (cause) {
      this.#isRefused = true;
      await recordRefused(app.current, { by, file: fileOf(before) }, cause);
      return refusal(asRankdError(cause));
    }
  }
}

function fileOf({ file }: LoadedConfig): string {
  return file ?? 'defaults';
}

function refusal(error: RankdError): ReloadOutcome {
  const { code, message, hint } = error;
  const withExcerpts = error instanceof ConfigError ? error.withExcerpts : message;
  return { state: 'refused', code, message, withExcerpts, hint };
}

interface ReloadRequest {
  by: string;
  file: string;
}

async function recordApplied(
  app: DaemonContext,
  asked: ReloadRequest,
  { applied, needRestart }: ChangedSettings,
): Promise<void> {
  const names = {
    applied: applied.map(({ name }) => name),
    needRestart: needRestart.map(({ name }) => name),
  };
  app.log.info(names, 'the configuration was reloaded');
  await auditReload(app, { ...asked, ...names });
}

async function recordRefused(app: DaemonContext, asked: ReloadRequest, cause: unknown): Promise<void> {
  const why = cause instanceof RankdError ? { why: cause.message } : { err: cause };
  app.log.error({ ...why, problem: 'configuration' }, 'the new configuration was refused; the old one stays in force');
  await auditReload(app, { ...asked, refused: asRankdError(cause).message });
}

/** Checks the credential now, so that a problem does not first show up at the next rank change. */
async function checkCredential(app: DaemonContext): Promise<string[]> {
  using call = callWithin(app.clock, credentialTimeoutMs, 'credential');
  try {
    const warnings = await credentialWarnings(app, call);
    for (const warning of warnings) app.log.warn(warning);
    return warnings;
  } catch (error) {
    const { message } = asRankdError(error);
    if (isRankdError(error, 'platform_credential')) return [message]; // already logged
    app.log.warn({ err: error, problem: 'group' }, 'the Roblox key could not be checked yet');
    return [`the Roblox key could not be checked yet: ${message}`];
  }
}
