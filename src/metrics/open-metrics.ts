import type { FastifyInstance } from 'fastify';
import type { Clock, Instrumentation } from '../ports/index.ts';
import type { LiveContext } from '../usecases/daemon-context.ts';
import { createMeters } from './meters.ts';
import { type MetricsListener, type MetricsOptions, serveMetrics } from './serve-metrics.ts';
import { watchApp, watchServer } from './watch-app.ts';
import { watchedPlatform } from './watched-platform.ts';
import { watchedStore } from './watched-store.ts';

export interface Metrics {
  watch: Instrumentation;
  serve(
    daemon: { app: LiveContext; server: FastifyInstance },
    at: Pick<MetricsOptions, 'host' | 'port' | 'trustedProxies'>,
  ): Promise<MetricsListener>;
}

export function openMetrics(clock: Pick<Clock, 'monotonic'>): Metrics {
  const meters = createMeters();
  return {
    watch: {
      platform: (platform) => watchedPlatform(platform, meters, clock),
      store: (store) => watchedStore(store, meters),
    },
    serve: ({ app, server }, at) => {
      watchServer(server, meters);
      const refresh = watchApp(app, meters);
      const { log, clock, foreign } = app.current;
      return serveMetrics(meters.registry, refresh, { ...at, log, clock, foreign });
    },
  };
}
