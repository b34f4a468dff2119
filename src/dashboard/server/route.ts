import type { DaemonContext } from '../../usecases/daemon-context.ts';
import type { DaemonStatus } from '../../usecases/documents/status.ts';
import type { Chart } from '../../usecases/views/chart.ts';
import type { PageUndos } from '../../usecases/views/page-undo.ts';
import type { Document } from './answers.ts';
import type { Login, Session, Sessions } from './sessions.ts';

/** What the routes of the page work with. */
export interface Page {
  sessions: Sessions;
  /** What `rankd status` is told. */
  status(): Promise<DaemonStatus>;
  chart: Chart;
  undos: PageUndos;
  /** Aborted once the page closes. */
  closing: AbortSignal;
}

/** A request that the page itself sent. */
export interface Sent {
  /** As it is now: what the request does goes on with it, even if another configuration is applied meanwhile. */
  app: DaemonContext;
  query: URLSearchParams;
  /** The body of a POST. */
  fields: Record<string, unknown>;
  /** Aborted once nobody waits for the answer any more. */
  gone: AbortSignal;
}

/** The same from somebody who is logged in. */
export interface Asked extends Sent {
  session: Session;
}

export interface Answer {
  status?: number;
  document: Document;
  /** The browser is let in from now on; `out`: it is not any more. */
  login?: Login | 'out';
}

/** `session`: somebody has to be logged in; `reading`: and must not ask too often; `changing`: and has to be at the page. */
export type Route =
  | { needs: 'nobody'; answer(page: Page, sent: Sent): Promise<Answer> }
  | { needs: 'session' | 'reading' | 'changing'; answer(page: Page, asked: Asked): Promise<Answer> };
