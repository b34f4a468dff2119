import { RankdError } from '../../base/errors.ts';
import { dashboardEvent } from '../../core/events.ts';
import { changeDocument, detailedChangeDocument } from '../../usecases/documents/change.ts';
import { sessionDocument } from '../../usecases/documents/dashboard.ts';
import { budgetDocument, statusDocument } from '../../usecases/documents/status.ts';
import { countChanges, searchChanges, showChange } from '../../usecases/history/history.ts';
import { requiredIn, selectionIn, valueIn, wholeNumberIn } from './queries.ts';
import type { Route } from './route.ts';

/** Everything below /api but the stream of events: each parses, calls one use case, and answers with its document. */
export const routes: Readonly<Record<string, Route>> = {
  'POST /api/login': {
    needs: 'nobody',
    async answer({ sessions }, { app, fields }) {
      const login = sessions.logIn(String(fields['link']));
      if (login === undefined)
        throw RankdError.withoutStack('link_refused', 'This link was used already, or is older than five minutes.');
      await app.store.appendAudit(dashboardEvent('login', {}, { by: login.session.by, at: app.clock.now() }));
      return { document: { session: { ...sessionDocument(login.session), token: login.token } }, login };
    },
  },
  'GET /api/session': {
    needs: 'session',
    answer: async (_page, { session }) => ({ document: { session: sessionDocument(session) } }),
  },
  'POST /api/active': {
    needs: 'changing', // which keeps that somebody is there
    answer: async (_page, { session }) => ({ document: { session: sessionDocument(session) } }),
  },
  'POST /api/logout': {
    needs: 'session',
    async answer({ sessions }, { app, session }) {
      sessions.logOut(session);
      await app.store.appendAudit(dashboardEvent('logout', {}, { by: session.by, at: app.clock.now() }));
      return { document: {}, login: 'out' };
    },
  },
  'GET /api/status': {
    needs: 'reading',
    async answer({ status }, { app }) {
      const [daemon, counts] = [await status(), await countChanges(app, app.group.title)];
      const state = daemon.isStopping ? 'stopping' : 'running';
      return { document: { status: statusDocument({ state, daemon, counts }) } };
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
};
