import type { Clock } from '../../ports/index.ts';
import { auditStore, retentionStore } from './audit.ts';
import { changeQueries } from './change-queries.ts';
import { changeWrites } from './change-writes.ts';
import type { Database, DeclarationsOf, OwnNode } from './database.ts';
import { declaredKeyStore } from './declared-keys.ts';
import { groupStore } from './groups.ts';
import { holdStore } from './holds.ts';
import { keyStore } from './keys.ts';
import { loginLinkStore } from './login-links.ts';
import { discordStore, personStore } from './people.ts';
import { webhookStore } from './webhooks.ts';
import { whitelistStore, workspaceStore } from './workspace.ts';

export function commonStore(
  db: Database,
  { clock, node, declarations }: { clock: Clock; node: OwnNode; declarations: DeclarationsOf },
) {
  return {
    ...workspaceStore(db),
    ...keyStore(db, clock),
    ...declaredKeyStore(db, clock, declarations),
    ...whitelistStore(db),
    ...changeWrites(db, clock, node),
    ...changeQueries(db, node),
    ...holdStore(db),
    ...groupStore(db),
    ...auditStore(db, clock),
    ...retentionStore(db),
    ...personStore(db),
    ...discordStore(db),
    ...loginLinkStore(db),
    ...webhookStore(db, declarations),
    clock,
  };
}
