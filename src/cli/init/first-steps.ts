import type { Store } from '../../ports/index.ts';
import { createKey } from '../../usecases/keys/keys.ts';

const demoPlace = 1;
const demoMember = 1001;

/**
 * What a newcomer can do next. Where there is no key yet and the output is a terminal, makes a demo key for the simulated group;
 * elsewhere no secret is shown, so none is made.
 */
export async function firstSteps(
  store: Pick<Store, 'listKeys' | 'createKey' | 'addEntries'>,
  { url, by, maySayKey }: { url: string; by: string; maySayKey: boolean },
): Promise<string> {
  if ((await store.listKeys({ limit: 1 })).length > 0) return 'Keys: rankd key list';
  if (!maySayKey) return `No key yet. Make one: rankd key create demo && rankd whitelist add ${demoPlace}`;
  const { key, secret } = await createKey(store, { name: 'demo', mode: 'live', scopes: ['verify', 'rank'] }, by);
  await store.addEntries({ keyId: key.id, placeIds: [demoPlace], note: 'made for the first run' }, by);
  return `
A demo key was made, and place ${demoPlace} put on its whitelist. The key is shown this once:

  ${secret}

Verify it:

  ${curl({ url: `${url}/v1/apikey`, secret, body: { placeid: demoPlace } })}

Make member ${demoMember} an Officer (rank 20):

  ${curl({
    url: `${url}/v1/ranker?placeid=${demoPlace}`,
    secret,
    body: { rankerName: 'You', rankerId: 0, rankeeName: 'Newcomer', rankeeId: demoMember, newRankId: 20 },
  })}

Then see it: rankd rank show ${demoMember}, and rankd history list
`;
}

function curl({ url, secret, body }: { url: string; secret: string; body: object }): string {
  return `curl -s '${url}' -H 'Authorization: Bearer ${secret}' -d '${JSON.stringify(body)}'`;
}
