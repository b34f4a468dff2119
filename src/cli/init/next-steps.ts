import type { ForGame, GameModels } from './for-game.ts';

/** What init has done. */
export interface InitOutcome extends ForGame, GameModels {
  /** What brings a daemon to serve what was written, unless init does it. */
  start: string | undefined;
  /** The name of the key that was made for the game, and whether it works from a place already. */
  key: { name: string; hasPlace: boolean } | undefined;
  /** The least rank with which a player may use commands. */
  minGroupRank: number | undefined;
}

/** What is left to do until a game changes a rank, numbered. */
export function nextSteps(outcome: InitOutcome, { host, port }: { host: string; port: number }): string {
  const { start, url } = outcome;
  const steps = [
    ...(start === undefined ? [] : [start]),
    url === undefined
      ? 'Give rankd an address that Roblox reaches, by a proxy or a tunnel (docs/hosting.md), and set it as server.public_url in rankd.yaml.'
      : `Have ${url} lead to http://${host}:${port}, by a proxy or a tunnel (docs/hosting.md), then look at it: rankd doctor --url`,
    ...keySteps(outcome),
    'In Roblox Studio, File, Experience Settings, Security: switch on Allow HTTP Requests.',
    ...modelSteps(outcome),
    ...lastSteps(outcome),
  ];
  return steps.map((step, index) => `  ${index + 1}. ${step}`).join('\n');
}

function keySteps({ key, url }: InitOutcome): string[] {
  const { name, hasPlace } = key ?? { name: 'my-game', hasPlace: false };
  const domain = url === undefined ? '' : `, for the domain ${new URL(url).hostname}`;
  return [
    ...(key === undefined ? [`Make the game key: rankd key create ${name}`] : []),
    ...(hasPlace ? [] : [`Let it be used from your game: rankd whitelist add PLACE --key ${name}`]),
    `On the Creator Dashboard, your experience, Secrets: make a secret named rankd with the game key${domain}.`,
  ];
}

function modelSteps({ url, system, written, leftOut }: InitOutcome): string[] {
  const write = `rankd game write${system === undefined ? '' : ` ${system.name}`}`;
  if (url === undefined) return [`Write the models for your game, which go where it says then: ${write}`];
  return [
    ...(leftOut.length === 0
      ? []
      : [`${leftOut.join(' and ')} was here already and was left as it is. To write it anew: ${write} --force`]),
    ...written.map(({ place, file }) => `In Roblox Studio, right-click ${place}, Insert from File: ${file.path}`),
  ];
}

function lastSteps({ system, minGroupRank }: InitOutcome): string[] {
  if (system?.typed === undefined) return ['Commands for the admin system of your game: rankd game list'];
  const type = `publish the game, join it, and type: ${system.typed}`;
  return minGroupRank === undefined
    ? [`In the script Config below Rankd, say from which rank on members may use commands (minGroupRank). Then ${type}`]
    : [
        `${type.replace('publish', 'Publish')} (commands are for members from rank ${minGroupRank} on: minGroupRank in the script Config below Rankd)`,
      ];
}
