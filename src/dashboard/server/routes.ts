import { RankdError } from '../../base/errors.ts';
import { userIn, userWords } from '../../core/user-ref.ts';
import { callWithin } from '../../ports/platform.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { linksDocument, listNamedLinks } from '../../usecases/discord/links-document.ts';
import { findGivable, showMember } from '../../usecases/group/group.ts';
import { memberDocument, roleTitleDocument } from '../../usecases/group/group-document.ts';
import { changeDocument, detailedChangeDocument } from '../../usecases/history/change-document.ts';
import { countOpenChanges, searchChanges, showChange } from '../../usecases/history/history.ts';
import { holdDocument } from '../../usecases/holds/hold-document.ts';
import { listHolds } from '../../usecases/holds/holds.ts';
import { openHold } from '../../usecases/holds/open-hold.ts';
import { usedKeyDocument } from '../../usecases/keys/key-document.ts';
import { listUsedKeys } from '../../usecases/keys/keys.ts';
import { findUser, userNameOf } from '../../usecases/people/users.ts';
import { undoDocument } from '../../usecases/undo/undo-document.ts';
import { sessionDocument } from '../../usecases/upkeep/daemon-document.ts';
import { takeLoginLink } from '../../usecases/upkeep/login-links.ts';
import { auditDashboard } from '../../usecases/upkeep/operator-events.ts';
import {
  budgetDocument,
  type DaemonStatus,
  statusDocument,
  storedFacts,
} from '../../usecases/upkeep/status-document.ts';
import { type Chart, chartDocument } from '../../usecases/views/chart.ts';
import { type PageRuns, pageRunDocument, previewUndo } from '../../usecases/views/page-runs.ts';
import { viewSetup } from '../../usecases/views/setup-document.ts';
import { viewWebhooks } from '../../usecases/webhooks/view-webhooks.ts';
import { webhookDocument } from '../../usecases/webhooks/webhook-document.ts';
import { actions } from './actions.ts';
import type { Document } from './answers.ts';
import { booleanIn, requiredIn, selectionIn, undoSelectionIn, valueIn, wholeNumberIn } from './queries.ts';
import { FieldError, inField } from './requests.ts';
import type { Login, Session, Sessions } from './sessions.ts';

export interface Page {
  sessions: Sessions;
  status(): Promise<DaemonStatus>;
  chart: Chart;
  runs: PageRuns;
  /** The command that starts rankd on this machine. */
  typedAs: string;
  /** Aborted once the page closes. */
  closing: AbortSignal;
}

export interface Sent {
  /** The context at the start of the request, which uses it to the end even if a reload replaces it. */
  app: DaemonContext;
  query: URLSearchParams;
  /** The body of a POST; empty for other methods. */
  fields: Record<string, unknown>;
  /** Aborted once the caller has disconnected. */
  gone: AbortSignal;
}

interface AuthenticatedRequest extends Sent {
  session: Session;
}

export interface Answer {
  status?: number;
  document: Document;
  /** The browser's new session, or `out` to end its session. */
  login?: Login | 'out';
}

/**
 * `session` requires a session. `reading` also applies a rate limit. `changing` requires a session that is allowed to
 * make changes, recent activity on the page, and an idempotency key.
 */
export type Route =
  | { needs: 'nothing'; answer(page: Page, sent: Sent): Promise<Answer> }
  | { needs: 'session' | 'reading' | 'changing'; answer(page: Page, asked: AuthenticatedRequest): Promise<Answer> };

/** The maximum number of keys or suspensions per response; the command line lists more. */
const maxListed = 100;

/** The routes under /api, except the event stream. */
export const routes: Readonly<Record<string, Route>> = {
  'POST /api/login': {
    needs: 'nothing',
    async answer({ sessions, typedAs }, { app, fields }) {
      const link = await takeLoginLink(app, String(fields['link']));
      if (link === undefined)
        throw RankdError.withoutStack(
          'link_refused',
          'This link is not valid: each link works only once, and only for five minutes.',
        );
      const login = sessions.begin(link);
      await auditDashboard(app, 'login', { by: login.session.by });
      return { document: { session: { ...sessionDocument(login.session, typedAs), token: login.token } }, login };
    },
  },
  'GET /api/session': {
    needs: 'session',
    answer: async ({ typedAs }, { session }) => ({ document: { session: sessionDocument(session, typedAs) } }),
  },
  'POST /api/active': {
    needs: 'changing', // records the user's activity
    answer: async ({ typedAs }, { session }) => ({ document: { session: sessionDocument(session, typedAs) } }),
  },
  'POST /api/logout': {
    needs: 'session',
    async answer({ sessions }, { app, session }) {
      sessions.logOut(session);
      await auditDashboard(app, 'logout', { by: session.by });
      return { document: {}, login: 'out' };
    },
  },
  'GET /api/status': {
    needs: 'reading',
    async answer({ status, chart, closing }, { app }) {
      const [daemon, openChanges] = [await status(), await countOpenChanges(app)];
      const { today } = await chart.view(app, closing); // counted in the background
      const counts = { openChanges, today };
      const state = daemon.isStopping ? 'stopping' : 'running';
      return { document: { status: statusDocument({ state, daemon, counts, ...(await storedFacts(app)) }) } };
    },
  },
  'GET /api/budget': {
    needs: 'reading',
    answer: async (_page, { app }) => ({ document: budgetDocument(app) }),
  },
  'GET /api/changes': {
    needs: 'reading',
    async answer(_page, { app, query }) {
      const limit = wholeNumberIn(query, 'limit', { min: 1, max: 100, preset: 50 });
      const cursor = valueIn(query, 'before');
      const { changes, next = null } = await searchChanges(app, { ...(await selectionIn(app, query)), limit, cursor });
      return { document: { changes: changes.map(changeDocument), next } };
    },
  },
  'GET /api/change': {
    needs: 'reading',
    async answer(_page, { app, query }) {
      return { document: { change: detailedChangeDocument(await showChange(app, requiredIn(query, 'id'))) } };
    },
  },
  'GET /api/undo': {
    needs: 'reading',
    async answer({ closing }, { app, query, session, gone }) {
      const selection = await undoSelectionIn(app, query);
      const stop = AbortSignal.any([gone, closing]);
      const { targets, run } = await previewUndo(app, selection, { by: session.by, stop });
      return { document: { undo: undoDocument({ targets, run, dryRun: true }), ids: targets.ids } };
    },
  },
  'GET /api/run': {
    needs: 'reading',
    answer: async ({ runs }, { query }) => ({ document: { run: pageRunDocument(runs.find(requiredIn(query, 'id'))) } }),
  },
  'GET /api/member': {
    needs: 'reading',
    async answer(_page, { app, query }) {
      return { document: await memberOf(app, requiredIn(query, 'user')) };
    },
  },
  'GET /api/roles': {
    needs: 'reading',
    async answer(_page, { app }) {
      using call = callWithin(app.clock, app.deadlineMs, 'operator');
      const { roles, givable, alongside } = await findGivable(app, undefined, call);
      const ids = (of: typeof roles) => of.map(({ id }) => id);
      return {
        document: { roles: roles.map(roleTitleDocument), givable: ids(givable), alongside: ids(alongside) },
      };
    },
  },
  'GET /api/setup': {
    needs: 'reading',
    answer: async ({ status }, { app }) => ({ document: { setup: await viewSetup(app, await status()) } }),
  },
  'GET /api/people': {
    needs: 'reading',
    async answer(_page, { app }) {
      return { document: { people: linksDocument(await listNamedLinks(app)) } };
    },
  },
  'GET /api/keys': {
    needs: 'reading',
    async answer({ chart, closing }, { app, query }) {
      const { ofKeys } = await chart.view(app, closing);
      const after = valueIn(query, 'after');
      const limit = wholeNumberIn(query, 'limit', { min: 1, max: maxListed, preset: maxListed });
      const { keys, next = null } = await listUsedKeys(app, { limit, ofKeys, ...(after !== undefined && { after }) });
      return { document: { keys: keys.map((key) => usedKeyDocument(key, app.clock.now())), next } };
    },
  },
  'GET /api/suspensions': {
    needs: 'reading',
    async answer(_page, { app, query }) {
      const holds = await listHolds(app, { isAll: booleanIn(query, 'all'), limit: maxListed });
      return { document: { suspensions: holds.map(holdDocument) } };
    },
  },
  'GET /api/webhooks': {
    needs: 'reading',
    answer: async (_page, { app }) => ({ document: { webhooks: (await viewWebhooks(app)).map(webhookDocument) } }),
  },
  'GET /api/chart': {
    needs: 'reading',
    answer: async ({ chart, closing }, { app }) => ({ document: chartDocument(await chart.view(app, closing)) }),
  },
  ...Object.fromEntries(
    Object.entries(actions).map(([path, act]): [string, Route] => [
      `POST /api/${path}`,
      {
        needs: 'changing',
        answer: async ({ runs }, { app, fields, session: { by } }) => ({
          document: await act(fields, { app, runs, by }),
        }),
      },
    ]),
  ),
};

const shownChanges = 5;

async function memberOf(app: DaemonContext, asked: string): Promise<Document> {
  using call = callWithin(app.clock, app.deadlineMs, 'operator');
  const found = userIn(asked);
  if (found === undefined) throw new FieldError('user', `must be ${userWords}`);
  return inField('user', async () => {
    const user = typeof found === 'number' ? { id: found, name: '' } : await findUser(app, found, call);
    const member = await showMember(app, user.id, call);
    const name = user.name || (await userNameOf(app, user.id, call));
    const hold = await openHold(app, user.id);
    const { changes } = await searchChanges(app, { rankeeId: user.id, limit: shownChanges });
    return {
      member: { ...memberDocument(member), name: name ?? null, highest: member.highest?.id ?? null },
      suspension: hold === undefined ? null : holdDocument(hold),
      changes: changes.map(changeDocument),
    };
  });
}
