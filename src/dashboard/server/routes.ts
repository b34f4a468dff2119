import { RankdError } from '../../base/errors.ts';
import { errorOf } from '../../usecases/change/change-record.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { changeDocument, detailedChangeDocument } from '../../usecases/history/change-document.ts';
import { countOpenChanges, searchChanges, showChange } from '../../usecases/history/history.ts';
import { holdDocument } from '../../usecases/holds/hold-document.ts';
import { liftHold, listHolds } from '../../usecases/holds/holds.ts';
import { keyDocument, usedKeyDocument } from '../../usecases/keys/key-document.ts';
import { listUsedKeys, pauseKey, resumeKey } from '../../usecases/keys/keys.ts';
import { pageUndoDocument, undoDocument } from '../../usecases/undo/undo-document.ts';
import { sessionDocument } from '../../usecases/upkeep/daemon-document.ts';
import { auditDashboard } from '../../usecases/upkeep/operator-events.ts';
import {
  budgetDocument,
  type DaemonStatus,
  statusDocument,
  storedFacts,
} from '../../usecases/upkeep/status-document.ts';
import { type Chart, chartDocument } from '../../usecases/views/chart.ts';
import { maxUndone, type PageUndos, previewUndo } from '../../usecases/views/page-undo.ts';
import { testWebhook } from '../../usecases/webhooks/send.ts';
import { viewWebhooks } from '../../usecases/webhooks/view-webhooks.ts';
import { webhookDocument, webhookTestDocument } from '../../usecases/webhooks/webhook-document.ts';
import type { Document } from './answers.ts';
import { isTrueIn, requiredIn, selectionIn, undoSelectionIn, valueIn, wholeNumberIn } from './queries.ts';
import { changeIdsIn, isTrueOf, reasonIn, textIn, userIdIn } from './requests.ts';
import type { Login, Session, Sessions } from './sessions.ts';

/** The context of the page's routes. */
export interface Page {
  sessions: Sessions;
  /** The status as `rankd status` gets it. */
  status(): Promise<DaemonStatus>;
  chart: Chart;
  undos: PageUndos;
  /** The command for `rankd` on this machine. */
  typedAs: string;
  /** Aborted once the page closes. */
  closing: AbortSignal;
}

/** A request from the page itself. */
export interface Sent {
  /** The present context: the request continues with it, even if a reload replaces it. */
  app: DaemonContext;
  query: URLSearchParams;
  /** The body of a POST. */
  fields: Record<string, unknown>;
  /** Aborted once the caller has disconnected. */
  gone: AbortSignal;
}

/** The same from a logged-in operator. */
interface Asked extends Sent {
  session: Session;
}

export interface Answer {
  status?: number;
  document: Document;
  /** The browser's new session; `out` if it ends. */
  login?: Login | 'out';
}

/** `session`: needs a session; `reading`: is also limited in rate; `changing`: also needs a user at the page. */
export type Route =
  | { needs: 'nobody'; answer(page: Page, sent: Sent): Promise<Answer> }
  | { needs: 'session' | 'reading' | 'changing'; answer(page: Page, asked: Asked): Promise<Answer> };

/** At most this many keys and suspensions are listed at once; the command line lists more. */
const maxListed = 100;

/**
 * Everything below /api except the stream of events: each parses, calls one use case, and answers with its document.
 */
export const routes: Readonly<Record<string, Route>> = {
  'POST /api/login': {
    needs: 'nobody',
    async answer({ sessions, typedAs }, { app, fields }) {
      const login = sessions.logIn(String(fields['link']));
      if (login === undefined)
        throw RankdError.withoutStack('link_refused', 'This link was used already, or is older than five minutes.');
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
      const { today } = await chart.view(app, closing); // counting them by reads takes long if there are many
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
  'POST /api/undo': {
    needs: 'changing',
    async answer({ undos }, { app, fields, session }) {
      const undo = await undos.start(app, { ids: changeIdsIn(fields, maxUndone), by: session.by });
      return { status: 202, document: { run: pageUndoDocument(undo) } };
    },
  },
  'GET /api/run': {
    needs: 'reading',
    answer: async ({ undos }, { query }) => ({
      document: { run: pageUndoDocument(undos.find(requiredIn(query, 'id'))) },
    }),
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
  'POST /api/keys/pause': {
    needs: 'changing',
    async answer(_page, { app, fields, session }) {
      const { key } = await pauseKey(app, { key: textIn(fields, 'key', 100), by: session.by });
      return { document: { key: keyDocument(key, app.clock.now()) } };
    },
  },
  'POST /api/keys/resume': {
    needs: 'changing',
    async answer(_page, { app, fields, session }) {
      const { key } = await resumeKey(app, { key: textIn(fields, 'key', 100), by: session.by });
      return { document: { key: keyDocument(key, app.clock.now()) } };
    },
  },
  'GET /api/suspensions': {
    needs: 'reading',
    async answer(_page, { app, query }) {
      const holds = await listHolds(app, { isAll: isTrueIn(query, 'all'), limit: maxListed });
      return { document: { suspensions: holds.map(holdDocument) } };
    },
  },
  'POST /api/suspensions/lift': {
    needs: 'changing',
    async answer(_page, { app, fields, session }) {
      const lift = { rankeeId: userIdIn(fields), force: isTrueOf(fields, 'force'), reason: reasonIn(fields) };
      const { hold, finished } = await liftHold(app, { ...lift, caller: { by: session.by, dryRun: false } });
      const refusal = errorOf(finished.change, finished.error);
      if (refusal !== undefined) throw refusal;
      return { document: { change: changeDocument(finished), suspension: holdDocument(hold) } };
    },
  },
  'GET /api/webhooks': {
    needs: 'reading',
    answer: async (_page, { app }) => ({ document: { webhooks: (await viewWebhooks(app)).map(webhookDocument) } }),
  },
  'POST /api/webhooks/test': {
    needs: 'changing',
    async answer(_page, { app, fields }) {
      return { document: webhookTestDocument(await testWebhook(app, textIn(fields, 'webhook', 100))) };
    },
  },
  'GET /api/chart': {
    needs: 'reading',
    answer: async ({ chart, closing }, { app }) => ({ document: chartDocument(await chart.view(app, closing)) }),
  },
};
