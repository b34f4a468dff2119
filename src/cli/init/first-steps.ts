import type { System } from '../../base/system.ts';
import type { Ports } from '../../ports/index.ts';
import { createKey, type KeyRequest, listKeys } from '../../usecases/keys/keys.ts';

const demoPlace = 1;
const demoMember = 1001;
const demoKey: KeyRequest = { name: 'demo', mode: 'live', scopes: ['verify', 'rank'], isSimulated: true };

/** What a newcomer can do next. If there is no key yet and a secret may be shown, makes a demo key for the simulated group. */
export async function firstSteps(
  ports: Pick<Ports, 'store' | 'clock'>,
  { url, by, maySayKey, system }: { url: string; by: string; maySayKey: boolean; system: System },
): Promise<string> {
  if ((await listKeys(ports, { limit: 1 })).keys.length > 0) return 'Keys: rankd key list';
  if (!maySayKey) return `No key yet. Make one: rankd key create demo, then rankd whitelist add ${demoPlace}`;
  const place = { id: demoPlace, note: 'made for the first run' };
  const { secret } = await createKey(ports, { ...demoKey, place, by });
  return `
A demo key was made, and place ${demoPlace} put on its whitelist. The key is shown this once:

  ${secret}

Verify it:

  ${system.post({ url: `${url}/v1/apikey`, secret, body: { placeid: demoPlace } })}

Make member ${demoMember} an Officer (rank 20):

  ${system.post({
    url: `${url}/v1/ranker?placeid=${demoPlace}`,
    secret,
    body: { rankerName: 'You', rankerId: 0, rankeeName: 'Newcomer', rankeeId: demoMember, newRankId: 20 },
  })}

Then see it: rankd rank show ${demoMember}, and rankd history list
`;
}
