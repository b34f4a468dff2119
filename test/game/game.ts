import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Clock } from '../../src/ports/index.ts';

export interface GameRequest {
  url: string;
  method: string;
  headers: Record<string, string>;
  body: string;
  /** In seconds. */
  timeout: number;
}

/** The return value of RequestAsync, or the error that it raises. */
export type GameAnswer = { status: number; body: string; headers?: Record<string, string> } | { raise: string };

export interface GameScript {
  class: 'ModuleScript' | 'Script' | 'Folder';
  /** The script's path, starting with its service. */
  path: string[];
  source?: string;
}

export interface GamePlayer {
  id: number;
  name: string;
  displayName?: string;
  team?: string;
}

/** The state of the game's world; omitted fields stay unchanged. */
export interface GameWorld {
  placeId?: number;
  groupId?: number;
  isHttpEnabled?: boolean;
  isClient?: boolean;
  isStudio?: boolean;
  isGroupServiceDown?: boolean;
  /** The error for a lookup of a user who is not in `users`. */
  namesRaise?: string;
  secrets?: Record<string, string>;
  /** The ids of Roblox users, keyed by lowercase name. */
  users?: Record<string, number>;
  /** The ranks in the group, as GroupService reports them, keyed by user id. */
  ranks?: Record<string, number>;
  /** Makes the server a private server that this user owns, or a reserved server if the id is 0. */
  privateServerOwnerId?: number;
  /** The path of a tagged instance, such as `ServerStorage/Rankd`, keyed by its tag. */
  tags?: Record<string, string>;
  /** The owners' user ids, keyed by the game pass's id. */
  passes?: Record<string, number[]>;
  isMarketplaceDown?: boolean;
  isMessagingDown?: boolean;
}

export interface GameOptions extends GameWorld {
  clock: Clock;
  serve: (request: GameRequest) => Promise<GameAnswer> | GameAnswer;
  players?: GamePlayer[];
  scripts?: GameScript[];
}

type Event =
  | ({ kind: 'request'; id: number } & GameRequest)
  | { kind: 'returned'; id: number; value: string }
  | { kind: 'closed' }
  | { kind: string; text: string };

/**
 * A simulated game server that runs real Luau scripts, with `clock` as its time source. Luau never blocks: waiting
 * scripts are suspended coroutines, and the virtual machine is entered once for each event.
 */
export class Game implements AsyncDisposable {
  /** Everything printed, warned, raised in a thread or shown to a player, e.g. `warn rankd: …`. */
  readonly output: string[] = [];
  /** Every request in order, with the seconds since the game started. */
  readonly requests: Array<GameRequest & { at: number }> = [];
  maxInFlight = 0;
  /** Every message published to the game's other servers. */
  readonly published: unknown[] = [];
  #inFlight = 0;
  readonly #id = randomUUID();
  readonly #luau: Enter;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #serve: GameOptions['serve'];
  readonly #returns = new Map<number | 'closed', (value: string) => void>();
  readonly #over = new AbortController();
  #alarm = new AbortController();
  #entered: Promise<void> = Promise.resolve();
  #nextId = 1;

  private constructor(luau: Enter, { clock, serve }: GameOptions) {
    this.#luau = luau;
    this.#clock = clock;
    this.#serve = serve;
    this.#startedAt = clock.monotonic();
  }

  static async start(options: GameOptions): Promise<Game> {
    const { clock: _, serve: __, players = [], scripts = [], ...world } = options;
    if (begun % gamesPerMachine === 0) machine = openLuau(begun);
    begun += 1;
    const game = new Game(await machine, options);
    await game.#call('begin');
    const defaults = {
      ...{ placeId: 1, groupId: 700, isHttpEnabled: true, secrets: {}, users: {}, ranks: {} },
    };
    await game.change({ ...defaults, ...world });
    for (const player of players) await game.join(player);
    await game.mount(scripts);
    return game;
  }

  /** The seconds since the game started. */
  get now(): number {
    return (this.#clock.monotonic() - this.#startedAt) / 1000;
  }

  change(world: GameWorld): Promise<void> {
    return this.#enter(() => this.#call('setWorld', JSON.stringify(world)));
  }

  join(player: GamePlayer): Promise<void> {
    return this.#enter(() => this.#call('join', JSON.stringify(player)));
  }

  mount(scripts: GameScript[]): Promise<void> {
    return this.#enter(() => this.#call('mount', JSON.stringify(scripts)));
  }

  leave(name: string): Promise<void> {
    return this.#enter(() => this.#call('leave', name));
  }

  /** Delivers a message from another server of the game. */
  receive(message: unknown): Promise<void> {
    return this.#enter(() => this.#call('message', JSON.stringify(message)));
  }

  /**
   * Runs `source` as the body of a server script that gets `argument`. Resolves with its result, or rejects with its
   * error.
   */
  async run<T = unknown>(source: string, argument: unknown = false): Promise<T> {
    const id = this.#nextId++;
    const returned = new Promise<string>((resolve) => this.#returns.set(id, resolve));
    await this.#enter(() => this.#call('run', id, source, JSON.stringify(argument)));
    const { value, raised } = JSON.parse(await returned) as { value?: T; raised?: string };
    if (raised !== undefined) throw new Error(raised);
    return value as T;
  }

  /** Resolves once every BindToClose function has finished. */
  async close(): Promise<void> {
    const closed = new Promise<string>((resolve) => this.#returns.set('closed', resolve));
    await this.#enter(() => this.#call('close'));
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    this.#alarm.abort();
    await this.#entered;
    await this.#call('end');
  }

  /** Serializes entries into Luau, because concurrent ones would run in an arbitrary order. */
  #enter(work: () => Promise<unknown>): Promise<void> {
    this.#entered = this.#entered.then(async () => {
      if (this.#over.signal.aborted) return;
      this.#process((await this.#call('step', this.now))[0]);
      await work();
      this.#process((await this.#call('step', this.now))[0]);
    });
    return this.#entered;
  }

  #call(operation: string, ...args: unknown[]): Promise<[string]> {
    return this.#luau(this.#id, operation, ...args);
  }

  #process(step: string): void {
    const [nextAt, events] = JSON.parse(step) as [number | null, Event[]];
    this.#alarm.abort();
    this.#alarm = new AbortController();
    if (nextAt !== null) {
      // Rounds up to whole milliseconds, so that the game never wakes early.
      const waitMs = Math.max(0, Math.ceil(this.#startedAt + nextAt * 1000 - this.#clock.monotonic()));
      this.#clock.sleep(waitMs, this.#alarm.signal).then(
        () => this.#enter(async () => undefined),
        () => undefined,
      );
    }
    for (const event of events) {
      if ('url' in event) void this.#answer(event);
      else if ('value' in event) this.#returns.get(event.id)?.(event.value);
      else if (event.kind === 'publish' && 'text' in event) this.published.push(JSON.parse(event.text));
      else if ('text' in event) this.output.push(`${event.kind} ${event.text}`);
      else this.#returns.get('closed')?.('');
    }
  }

  async #answer({
    id,
    kind: _,
    ...request
  }: Event & { kind: 'request' } & GameRequest & { id: number }): Promise<void> {
    this.requests.push({ ...request, at: this.now });
    this.#inFlight += 1;
    this.maxInFlight = Math.max(this.maxInFlight, this.#inFlight);
    const timeout = new AbortController();
    const timedOut = this.#clock.sleep(request.timeout * 1000, timeout.signal).then(
      () => ({ raise: 'HttpError: Timedout' }),
      () => new Promise<never>(() => undefined),
    );
    const answer: GameAnswer = await Promise.race([Promise.resolve().then(() => this.#serve(request)), timedOut]);
    timeout.abort();
    this.#inFlight -= 1;
    const { body = '', ...rest } = { headers: {}, ...answer } as { body?: string };
    const chunks = body.match(/[\s\S]{1,20000}/gu) ?? [];
    await this.#enter(async () => {
      for (const chunk of chunks) await this.#call('chunk', chunk);
      await this.#call('answer', id, JSON.stringify({ ...rest, isJson: isJson(body) }));
    });
  }
}

/** Forwards a game's requests over a real connection to `url` instead of the requested host. */
export function forwardTo(url: string): (request: GameRequest) => Promise<GameAnswer> {
  return async (request) => {
    const { pathname, search } = new URL(request.url);
    try {
      const { method, headers, body } = request;
      const response = await fetch(url + pathname + search, {
        method,
        headers: { ...headers },
        ...(method !== 'GET' && { body }),
      });
      return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
    } catch {
      return { raise: 'HttpError: NetFail' };
    }
  };
}

const load = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');

/**
 * Runs several games in one virtual machine. The machine's memory can't grow, so each game is released when it ends.
 */
const games = `
local host, roblox = ...
local games, factories = {}, {}
return function(id, operation, ...)
	if operation == "begin" then
		games[id] = roblox(host, factories)
	elseif operation == "end" then
		games[id] = nil
	else
		return games[id][operation](...)
	end
	return nil
end`;

type Enter = (id: string, operation: string, ...args: unknown[]) => Promise<[string]>;

/** A new virtual machine is started after this many games, because its memory is fixed and Node.js frees it late. */
const gamesPerMachine = 100;
let begun = 0;
let machine: Promise<Enter>;

async function openLuau(number: number): Promise<Enter> {
  const { LuauState } = await importLuau(number);
  const state = await LuauState.createAsync({});
  const host = {
    compile: (source: string, name: string) => {
      try {
        return state.loadstring(source, name, true);
      } catch (error) {
        return String((error as Error).message);
      }
    },
    isJson,
    quote: (text: string) => JSON.stringify(text),
    unquote: (text: string) => JSON.parse(text) as string,
    uuid: () => randomUUID(),
  };
  const roblox = state.loadstring(load('roblox.luau'), '=roblox', true);
  const [enter] = (await state.loadstring(games, '=games', true)(host, roblox)) as [Enter];
  return enter;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Loads Luau's Asyncify build. In the other build, which luau-web uses if WebAssembly can suspend, errors escape
 * `pcall` in resumed threads.
 */
async function importLuau(number: number): Promise<typeof import('luau-web')> {
  const webAssembly = Reflect.get(globalThis, 'WebAssembly') as object;
  const suspending = Object.getOwnPropertyDescriptor(webAssembly, 'Suspending');
  if (suspending !== undefined) Reflect.deleteProperty(webAssembly, 'Suspending');
  try {
    // The number forces a new copy of the module, with its own memory.
    return await import(`${import.meta.resolve('luau-web')}?${number}`);
  } finally {
    if (suspending !== undefined) Object.defineProperty(webAssembly, 'Suspending', suspending);
  }
}
