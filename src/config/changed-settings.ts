import type { LoadedConfig } from './load.ts';

/** The settings whose values differ, by path; `needRestart`: a running daemon can't take these up. */
export function changedSettings(
  before: LoadedConfig,
  after: LoadedConfig,
): { applied: string[]; needRestart: string[] } {
  const paths = [...new Set([...before.origins.keys(), ...after.origins.keys()])];
  const changed = paths.filter((path) => valueAt(before, path) !== valueAt(after, path));
  return {
    applied: changed.filter((path) => !isBound(path)),
    needRestart: changed.filter(isBound),
  };
}

/** What a listener was made with. */
function isBound(path: string): boolean {
  return (path.startsWith('server.') && path !== 'server.deadline') || path.startsWith('metrics.');
}

function valueAt({ config, origins }: LoadedConfig, path: string): string | undefined {
  if (path === 'platform.api_key') return config.platform.kind === 'open-cloud' ? config.platform.apiKey.reveal() : '';
  return JSON.stringify(origins.get(path)?.value);
}
