import { describeRefusal } from '../../base/errors.ts';
import type { DiscordConfig } from '../../config/discord.ts';
import { refusalOf } from '../../core/access.ts';
import type { Ranking } from '../change/ranking.ts';
import type { DaemonStatus } from '../upkeep/status-document.ts';
import { type Finding, fail, ok } from './finding.ts';

/** Checks that Discord commands can work. `daemon` is this data directory's daemon, if it responds. */
export async function discordFindings(
  { store, group, clock }: Pick<Ranking, 'store' | 'group' | 'clock'>,
  discord: DiscordConfig | undefined,
  daemon: DaemonStatus | undefined,
): Promise<Finding[]> {
  if (discord === undefined) return [];
  const workspace = await store.getWorkspace();
  const found = discord.rows.map(async ({ role, key: name }): Promise<Finding[]> => {
    const key = await store.findKey(name);
    const text = `people with the Discord role ${role} can't change any rank: `;
    if (key?.name !== name)
      return [fail('discord', `${text}there is no key "${name}"`, `rankd key create ${name} --for-discord`)];
    if (!key.isForDiscord)
      return [fail('discord', `${text}the key "${name}" is for a game`, 'name a key for Discord in discord.commands')];
    const question = { scope: key.scopes.find((scope) => scope !== 'verify') ?? 'rank', group: group.title } as const;
    const refusal = refusalOf({ key, workspace }, { ...question, placeId: undefined, now: clock.now() });
    if (refusal === undefined) return [];
    const why = refusal.details === undefined ? refusal.message : describeRefusal(refusal.details);
    const isLost = key.revokedAt !== undefined;
    return [
      fail(
        'discord',
        text + why,
        isLost ? `rankd key create ${name} --for-discord` : (refusal.hint ?? 'rankd key list'),
      ),
    ];
  });
  const findings = (await Promise.all(found)).flat();
  if (findings.length > 0) return findings;
  const seen = daemon?.discord?.lastAt ?? undefined;
  const last =
    daemon === undefined
      ? ''
      : `, ${seen === undefined ? 'no request since the daemon started' : `last request at ${seen}`}`;
  return [
    ok(
      'discord',
      `server ${discord.server}, ${discord.rows.length === 1 ? '1 role' : `${discord.rows.length} roles`}${last}`,
    ),
  ];
}
