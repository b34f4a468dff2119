import { withoutKeys } from '../core/api-key.ts';
import { simulatedGroup } from '../core/group-title.ts';
import type { Config } from './config.ts';

/** A text that no two groups share. Changes and idempotency keys count in their own group only. */
export function groupTitle(platform: Config['platform']): string {
  if (platform.kind === 'open-cloud') return `group ${platform.groupId} on ${new URL(platform.baseUrl).host}`;
  return platform.groupFile === undefined ? simulatedGroup : withoutKeys(`${simulatedGroup} of ${platform.groupFile}`);
}
