import type { Command } from 'commander';
import { openRanking, type RankingApp } from '../app.ts';
import { systemClock } from '../base/clock.ts';
import { restrictToOwner } from '../base/data-dir.ts';
import { asRankdError, RankdError } from '../base/errors.ts';
import { ownerOf } from '../base/system.ts';
import { dataDirectory, isDataDirNamed, unnamedServiceDirectory } from '../config/data-dir.ts';
import { storeFinder } from '../config/find-store.ts';
import type { LoadedConfig } from '../config/load.ts';
import { type ConfigLocationSources, locateConfig } from '../config/locate.ts';
import { isUsable, temporaryDataDir } from '../config/temporary-data-dir.ts';
import { askStatus } from '../control/ask.ts';
import type { CallContext, Migration, Ports, StoreEngine, StoreOperations } from '../ports/index.ts';
import { callWithin } from '../ports/platform.ts';
import { engineOf } from '../stores/engine.ts';
import type { Alarm } from '../usecases/change/platform-trust.ts';
import { hintOf } from '../usecases/error-document.ts';
import { storeServedGroup } from '../usecases/group/served-group.ts';
import { Console, type RunLine } from './console.ts';
import {
  asChosenByDaemon,
  type DaemonAndConfig,
  isSimulatedHere,
  otherGroup,
  refuseLostDatabase,
} from './daemon-here.ts';
import type { GlobalOptions, Io } from './io.ts';
import { hintsAsTyped } from './output/help.ts';
import { type Shown, screenOf } from './output/table.ts';
import { TerminalLine, whileWaiting } from './output/terminal.ts';
import { jsonLine, printableLines } from './output/text.ts';
import { refuseRoot } from './refuse-root.ts';

/** Variables that matter even to commands that need no configuration. */
const settingVariables = /^RANKD_(AUDIT_HEAD_FILE|GROUP_ID|PLATFORM_KIND)$/;

/** A command's context: its options, its output, and its access to the store, the platform and the configuration. */
export class Cli {
  readonly io: Io;
  readonly line: TerminalLine;
  readonly program: Command;
  readonly #line: readonly string[];
  readonly #run: RunLine;
  readonly #warnings: string[] = [];
  #isSimulated = false;
  #temporaryDir: string | undefined;
  #storageLocation: string | undefined;
  readonly #resolved: Array<Record<string, unknown>> = [];

  constructor(io: Io, program: Command, { line, run }: { line: readonly string[]; run: RunLine }) {
    this.io = io;
    this.line = new TerminalLine(io, () => this.options);
    this.program = program;
    this.#line = line;
    this.#run = run;
  }

  /**
   * Creates a console that runs further commands in this process, and a copy of this context with the console's input
   * and output.
   */
  onConsole(): { console: Console; cli: Cli } {
    const run = this.#run;
    const console = new Console(this.io, run);
    return { console, cli: new Cli(console.io, this.program, { line: this.#line, run }) };
  }

  get options(): GlobalOptions {
    return this.program.opts();
  }

  /** The actor recorded in the audit log. */
  get by(): string {
    return this.io.operator;
  }

  /** An absolute path. The directory may not exist yet. */
  get dataDir(): string {
    return this.#temporaryDir ?? this.#usualDataDir;
  }

  get #usualDataDir(): string {
    return dataDirectory(this.options.dataDir, this.io);
  }

  /**
   * With PostgreSQL, chooses a temporary data directory if none is named and this user can't write to the default one.
   * Ignores an error in finding the store, because the command itself reports it.
   */
  async chooseDataDir(): Promise<void> {
    const { options, io, dataDir } = this;
    if (io.user === undefined || isDataDirNamed(options.dataDir, io) || isUsable(dataDir)) return;
    const findStore = async () => storeFinder(this.configSources)?.();
    const store = await findStore().catch(() => undefined);
    this.#temporaryDir = store && temporaryDataDir(io.user, store);
  }

  sayTemporaryDir(): void {
    if (this.#temporaryDir === undefined) return;
    this.say(
      `The data directory ${this.#usualDataDir} can't be used, so the socket and the lock are in ${this.#temporaryDir}.`,
    );
  }

  /** Makes this user's data directory private. Throws the same errors as `refuseRoot` and `restrictToOwner`. */
  enterDataDir(): void {
    const { dataDir, io } = this;
    this.refuseRootIn(dataDir);
    if (io.user !== undefined && restrictToOwner(dataDir, io.user))
      this.say(`The data directory ${dataDir} was open to other users; now only its owner can enter it.`);
  }

  refuseRootIn(dataDir: string): void {
    refuseRoot(dataDir, this.io, this.#line);
  }

  get operations(): StoreOperations {
    return this.#engine.operations;
  }

  async isOnServer(): Promise<boolean> {
    return (await this.#engine.place()).isServer;
  }

  get #engine(): StoreEngine {
    const { configSources, dataDir } = this;
    return engineOf({ dataDir, clock: systemClock, server: storeFinder(configSources) });
  }

  /** Prints the result: `parts`, each starting on a new line, or with `--json` the document. */
  print(document: Record<string, unknown>, ...parts: Array<string | Shown>): void {
    const text = this.shown(parts);
    this.printAsIs(document, text && `${text}\n`);
  }

  shown(parts: Array<string | Shown>): string {
    const screen = screenOf(this.io, systemClock.now());
    const texts = parts.map((part) => (typeof part === 'string' ? printableLines(part) : part(screen)));
    return texts.filter((text) => text !== '').join('\n');
  }

  /** Prints a name for use in scripts. On a terminal, prints it only with -q, because a message already contains it. */
  printName(document: Record<string, unknown>, name: string): void {
    this.print(document, this.io.stdoutIsTerminal && !this.options.quiet ? '' : name);
  }

  /** Prints the result without replacing control characters in the text. */
  printAsIs(document: Record<string, unknown>, text: string): void {
    this.line.clear();
    this.io.stdout(this.#render(document, text));
  }

  /** Like `print`, but rejects if the output can't be written. */
  async printOrFail(document: Record<string, unknown>, text: string): Promise<void> {
    this.line.clear();
    await this.io.stdoutBytes(Buffer.from(this.#render(document, `${printableLines(text)}\n`)));
  }

  #render(document: Record<string, unknown>, text: string): string {
    const warnings = this.#warnings.length > 0 ? { warnings: this.#warnings } : {};
    const simulated = this.#isSimulated ? { simulated: true } : {};
    const resolved = this.#resolved.length > 0 ? { resolved: this.#resolved } : {};
    return this.options.json ? jsonLine({ v: 1, ...document, ...resolved, ...simulated, ...warnings }) : text;
  }

  /** Reports where the command stored data. Call this after all other output. */
  sayStorageLocation(): void {
    if (this.#storageLocation !== undefined) this.say(this.#storageLocation);
    this.#storageLocation = undefined;
  }

  say(text: string): void {
    if (this.options.quiet || this.options.json) return;
    this.line.clear();
    this.io.stderr(`${printableLines(this.asTyped(text))}\n`);
  }

  /** Reports a migration even with -q and --json, because older versions of rankd can no longer use the database. */
  readonly onMigrated = ({ database, from, to, copy }: Migration): void => {
    this.line.clear();
    const text = `The database ${database} was migrated from schema ${from} to ${to}; ${copy === null ? 'rankd made no copy of it' : `a copy from before the migration is ${copy}`}.`;
    const document = { v: 1, migration: { database, from, to, copy } };
    this.io.stderr(this.options.json ? jsonLine(document) : `${printableLines(text)}\n`);
  };

  /**
   * Reports the user, role or places that an argument resolved to. With `--json`, adds them to `resolved` in the
   * document.
   */
  sayResolved(text: string, facts: Record<string, unknown>): void {
    this.#resolved.push(facts);
    this.say(text);
  }

  /** Warns of a problem that does not stop the command. With `--json`, adds it to `warnings` in the document. */
  warn(problem: RankdError): void {
    const warning = `${problem.message}\ntry: ${hintOf(problem)}`;
    this.#warnings.push(this.asTyped(warning));
    this.say(`warning: ${warning}`);
  }

  async ask(question: string): Promise<string> {
    using _held = this.line.hold();
    return await this.io.ask(printableLines(question));
  }

  /** Rewrites the commands in the text to match this command line, as `hintsAsTyped` does. */
  asTyped(text: string, { isJson = false } = {}): string {
    return hintsAsTyped(text, { ...this, isJson });
  }

  get configSources(): ConfigLocationSources {
    const { env, cwd, user, nodeVersion: version, nodeOptions: options } = this.io;
    return { configFile: this.options.config, env, cwd, user, node: { version, options } };
  }

  /** Loads the configuration, and prints its warnings. Imports the YAML parser and the schema on demand. */
  async loadConfig(flags: Record<string, string> = {}): Promise<LoadedConfig> {
    const { loadConfig } = await import('../config/load.ts');
    const loaded = loadConfig({ ...this.configSources, flags });
    for (const warning of loaded.warnings) this.say(`warning: ${warning}`);
    return loaded;
  }

  /** Runs `work` on the store, without the platform. If `isWriting`, makes the same checks as `withWrites`. */
  async withStore<T>(
    work: (ports: Pick<Ports, 'store' | 'clock'>) => Promise<T>,
    { isWriting = false } = {},
  ): Promise<T> {
    return isWriting ? this.withWrites(work) : this.#withStore(work, { isReading: true });
  }

  /**
   * Runs `work`, which writes to the store and does not use the platform. Throws `store_unavailable` if the running
   * daemon would not see the writes. `isSimulated` resolves with true if new keys belong to a simulated group.
   */
  async withWrites<T>(
    work: (ports: Pick<Ports, 'store' | 'clock'>, isSimulated: () => Promise<boolean>) => Promise<T>,
  ): Promise<T> {
    return this.#withStore((ports) =>
      this.#whileRecordingHeads(ports, (found) => work(ports, () => isSimulatedHere(ports, found))),
    );
  }

  async #withStore<T>(
    work: (ports: Pick<Ports, 'store' | 'clock'>) => Promise<T>,
    { isReading = false } = {},
  ): Promise<T> {
    const engine = this.#engine;
    const { onMigrated } = this;
    const store = await this.#open(engine, (onNew) => engine.openStore({ onNew, onMigrated, isReading }));
    try {
      return await work({ store, clock: store.clock });
    } finally {
      await store.close();
    }
  }

  /**
   * Opens a store. Reports a new database and a service's data directory, because a mistyped directory would look like
   * lost data.
   */
  async #open<Opened>(
    engine: Pick<StoreEngine, 'place'>,
    open: (onNew: () => void) => Promise<Opened>,
  ): Promise<Opened> {
    let isNew = false;
    const opened = await open(() => {
      isNew = true;
    });
    const { dataDir } = this;
    const { text, isServer } = await engine.place();
    if (isNew && isServer) this.say(`The database ${text} had no rankd data; rankd created its schema there.`);
    else if (isNew) this.say(`There was no database in ${dataDir}; rankd created one.`);
    const service = unnamedServiceDirectory(this.options.dataDir, this.io);
    if (service === dataDir) this.say(`Using the service's data directory, ${dataDir}.`);
    else if (service !== undefined)
      this.say(
        `This command uses ${dataDir}. To use the service's data: sudo -u ${this.io.system.quote(ownerOf(service))} rankd --data-dir ${service} …`,
      );
    return opened;
  }

  /**
   * Runs `work` on the store and the platform. `call` ends at the configured deadline. If `isWriting`, throws if the
   * running daemon would not see the writes, or serves a different group.
   */
  async withRanking<T>(
    work: (app: RankingApp, call: CallContext) => Promise<T>,
    { isWriting = false } = {},
  ): Promise<T> {
    const loaded = await this.loadConfig();
    const daemon = await askStatus(this.dataDir);
    const config = asChosenByDaemon(daemon, loaded.config);
    const other = otherGroup(daemon, config);
    if (other !== undefined && isWriting) throw other;
    if (other !== undefined) this.warn(other);
    const report = ({ message }: Alarm) =>
      this.warn(new RankdError('platform_unavailable', message, { hint: 'rankd doctor' }));
    const open = (onNew: () => void) =>
      openRanking({ config, dataDir: this.dataDir, report, onNew, onMigrated: this.onMigrated, isReading: !isWriting });
    await using app = await this.#open(this.#engine, open);
    if (daemon !== undefined) app.trust.adoptDoubt(daemon.platformTrust);
    if (config.platform.kind === 'simulated') this.saySimulated();
    using call = callWithin(app.clock, app.deadlineMs, 'operator');
    const done = () => whileWaiting(this.line, 'waiting for Roblox', () => work(app, call));
    if (!isWriting) return await done();
    return await this.#whileRecordingHeads(app, async () => {
      await storeServedGroup(app, { ...loaded, config });
      return await done();
    });
  }

  saySimulated(): void {
    if (this.#isSimulated) return;
    this.#isSimulated = true;
    this.say('SIMULATED GROUP: nothing here touches Roblox.');
  }

  /**
   * Runs `work`, which writes to the store. Throws the same errors as `refuseLostDatabase`. If no daemon responds,
   * records the new audit heads in the configured file, and only warns if that fails, because the writes are already
   * committed.
   */
  async #whileRecordingHeads<T>(
    ports: Pick<Ports, 'store' | 'clock'>,
    work: (found: DaemonAndConfig) => Promise<T>,
  ): Promise<T> {
    const daemon = await refuseLostDatabase(this.dataDir, () => this.isOnServer());
    const found = { daemon, config: daemon === undefined ? await this.#readConfig() : 'none' } as const;
    const file = typeof found.config === 'object' ? found.config.audit.headFile : undefined;
    const done = file === undefined ? await work(found) : await this.#recordingHeads(ports, file, () => work(found));
    const { text, isServer } = await this.#engine.place();
    const server = daemon === undefined ? serving(await this.servedBy(ports)) : 'the running daemon is using it';
    this.#storageLocation = `This is stored in ${isServer ? 'the database ' : ''}${text}; ${server}.`;
    return done;
  }

  /**
   * Call this if the data directory's daemon did not respond. Returns `silent` if that daemon is running nevertheless;
   * otherwise, the names of the other daemons that serve the store.
   */
  async servedBy({ store }: Pick<Ports, 'store'>): Promise<'silent' | string[]> {
    if (await this.operations.isDaemonRunning()) return 'silent';
    const nodes = (await store.nodes?.listNodes().catch(() => undefined)) ?? [];
    return nodes.filter(({ state }) => state === 'serving').map(({ name }) => name);
  }

  async #recordingHeads<T>(ports: Pick<Ports, 'store' | 'clock'>, file: string, work: () => Promise<T>): Promise<T> {
    const { newestEvent, noteHeads } = await import('../usecases/history/audit-heads.ts');
    const afterId = await newestEvent(ports);
    try {
      return await work();
    } finally {
      await noteHeads(ports, { file, afterId }).catch((error) => this.warn(asRankdError(error)));
    }
  }

  /** True if the running daemon uses a simulated group or, if none responds, if a new daemon would. */
  async simulates(): Promise<boolean> {
    const daemon = await askStatus(this.dataDir);
    if (daemon !== undefined) return daemon.simulated;
    const config = await this.#readConfig();
    return config === 'none' || (config !== 'unreadable' && config.platform.kind === 'simulated');
  }

  /**
   * Returns `unreadable` instead of throwing, because a broken configuration must not stop a command that needs none.
   */
  async #readConfig(): Promise<DaemonAndConfig['config']> {
    const sources = this.configSources;
    const isSet = Object.keys(sources.env).some((name) => settingVariables.test(name));
    if (!isSet && locateConfig(sources) === undefined) return 'none';
    const { loadConfig } = await import('../config/load.ts');
    try {
      return loadConfig({ ...sources, flags: {} }).config;
    } catch {
      return 'unreadable';
    }
  }

  /** Like `withRanking` for work that only reads, but also warns of settings that no longer fit the group. */
  async withGroup<T>(work: (app: RankingApp, call: CallContext) => Promise<T>): Promise<T> {
    return this.withRanking(async (app, call) => {
      const { misfits } = await app.group.scheme(call);
      for (const { message, fix } of misfits) this.warn(new RankdError('configuration_misfit', message, { hint: fix }));
      return work(app, call);
    });
  }
}

function serving(daemons: 'silent' | string[]): string {
  if (daemons === 'silent') return 'the daemon that uses it is not responding';
  if (daemons.length === 0) return 'no daemon is using it';
  return daemons.length === 1
    ? `the daemon ${daemons[0]} is using it`
    : `the daemons ${daemons.join(', ')} are using it`;
}
