/** What init has done. */
export interface InitOutcome {
  /** What brings a daemon to serve what was written. */
  start: string;
  publicUrl: string | undefined;
  /** The file with the model for the game. */
  model: string | undefined;
  hasKey: boolean;
}

/** What is left to do until a game changes a rank, numbered. */
export function nextSteps(
  { start, publicUrl, model, hasKey }: InitOutcome,
  { host, port }: { host: string; port: number },
): string {
  const steps = [
    start,
    publicUrl === undefined
      ? 'Give rankd an address that Roblox reaches, by a proxy or a tunnel (docs/hosting.md), and set it as server.public_url in rankd.yaml.'
      : `Have ${publicUrl} lead to http://${host}:${port}, by a proxy or a tunnel (docs/hosting.md), then look at it: rankd doctor --url`,
    hasKey
      ? 'On the Creator Dashboard, your experience, Secrets: make a secret named rankd with the key for your game.'
      : 'Make the key for your game: rankd key create my-game, then rankd whitelist add PLACE. On the Creator Dashboard, your experience, Secrets: make a secret named rankd with it.',
    'In Roblox Studio, File, Experience Settings, Security: switch on Allow HTTP Requests.',
    ...(model === undefined ? [writeStep(publicUrl)] : []),
    `In Roblox Studio, right-click ServerScriptService, Insert from File: ${model ?? 'Rankd.rbxmx'}`,
    'Commands for the admin system of your game: rankd game list',
  ];
  return steps.map((step, index) => `  ${index + 1}. ${step}`).join('\n');
}

function writeStep(publicUrl: string | undefined): string {
  if (publicUrl === undefined) return 'Write the model for your game: rankd game write';
  return 'Write the model for your game: a Rankd.rbxmx was here already and was left as it is, so move it away, then rankd game write';
}
