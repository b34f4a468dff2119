import { readFileSync } from 'node:fs';
import { ManualClock } from '../support/manual-clock.ts';
import { Game, type GameAnswer, type GameOptions, type GameRequest, type GameScript } from './game.ts';

export function source(file: string): string {
  return readFileSync(new URL(`../../src/game/${file}`, import.meta.url), 'utf8');
}

export const rankdModule: GameScript = {
  class: 'ModuleScript',
  path: ['ServerScriptService', 'Rankd'],
  source: source('Rankd/init.luau'),
};

export interface Result {
  ok: boolean;
  isKnown: boolean;
  code: string;
  message: string;
  status: number;
  rankeeId?: number;
  rank?: number;
  retryAfter?: number;
  changeId?: string;
  requestId?: string;
  attempts: number;
}

export const secret = 'rk_live_0123456789abcdefghijABCDEFGHIJ0123456';

/**
 * Starts a game server with the Rankd module, a key in the secret `rankd`, and the players Ann (1001), Bob (1002) and
 * Cid (1003).
 */
export async function openScene(options: Partial<GameOptions> & Pick<GameOptions, 'serve'>): Promise<Scene> {
  const clock = new ManualClock();
  const game = await Game.start({
    clock,
    secrets: { rankd: secret },
    users: { offline: 2001, ann: 1001 },
    players: ['Ann', 'Bob', 'Cid'].map((name, index) => ({ id: 1001 + index, name, team: 'Red' })),
    scripts: [rankdModule],
    ...options,
  });
  return new Scene(game, clock);
}

const prelude = `local given = ...
local Players = game:GetService("Players")
local Rankd = require(game:GetService("ServerScriptService").Rankd)
local rankd = Rankd.new({ url = "https://rankd.example.com" })
`;

export class Scene implements AsyncDisposable {
  readonly game: Game;
  readonly clock: ManualClock;

  constructor(game: Game, clock: ManualClock) {
    this.game = game;
    this.clock = clock;
  }

  /**
   * Runs a script that can use `given`, `Players`, `Rankd` and `rankd`, and lets time pass until the script returns.
   */
  run<T = Result>(script: string, given: unknown = false): Promise<T> {
    return this.clock.passUntil(this.game.run<T>(prelude + script, given));
  }

  headers(name: string): Array<string | undefined> {
    return this.game.requests.map(({ headers }) => headers[name]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.game[Symbol.asyncDispose]();
  }
}

/** Responds as if rankd had made the requested change, or, to a GET, as if the group had no roles. */
export function applied(request: GameRequest, rest: object = {}): GameAnswer {
  if (request.method === 'GET')
    return { status: 200, body: '{"success":true,"message":"The group has no roles.","roles":[]}' };
  const { robloxUserId } = JSON.parse(request.body) as { robloxUserId: number };
  const body = { success: true, message: `${robloxUserId} is Officer.`, robloxUserId, newRank: 20, ...rest };
  return { status: 200, body: JSON.stringify(body), headers: { 'x-request-id': 'req_1', 'x-rank-change': 'chg_1' } };
}

export function refused(status: number, code: string, rest: object = {}): GameAnswer {
  const body = { success: false, error: code, code, message: `rankd says ${code}.`, requestId: 'req_2', ...rest };
  return { status, body: JSON.stringify(body), headers: { 'x-request-id': 'req_2' } };
}

/** Returns a server that sends these responses in turn, and then repeats the last one. */
export function inTurn(...answers: Array<GameAnswer | ((request: GameRequest) => GameAnswer)>): GameOptions['serve'] {
  let next = 0;
  return (request) => {
    const answer = answers[Math.min(next++, answers.length - 1)];
    if (answer === undefined) throw new Error('no answer was given');
    return typeof answer === 'function' ? answer(request) : answer;
  };
}
