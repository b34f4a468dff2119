import type { Config } from './config.ts';

/** One text for each group that there can be. */
export function groupTitle(platform: Config['platform']): string {
  if (platform.kind === 'open-cloud') return `group ${platform.groupId} on ${new URL(platform.baseUrl).host}`;
  return platform.groupFile === undefined ? 'the simulated group' : `the simulated group of ${platform.groupFile}`;
}
