import type { Registry } from 'prom-client';
import { RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { acceptsEncoding, listenUrl } from '../base/net.ts';
import { zlib } from '../base/node-modules.ts';
import { createListener, listenAt } from '../http/listener.ts';
import type { Clock } from '../ports/index.ts';
import type { ForeignProtocols } from '../usecases/daemon-context.ts';

export interface MetricsListener extends AsyncDisposable {
  url: string;
}

export interface MetricsOptions {
  host: string;
  port: number;
  trustedProxies: readonly string[];
  log: Logger;
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
  foreign?: ForeignProtocols;
}

const section = 'metrics';
/** More than Prometheus servers and people with curl need. */
const maxConnections = 20;
/** Requests within this time share one rendering, because rendering is the slowest part of a response. */
const renderingLifeMs = 1_000;

/**
 * Serves GET /metrics in the Prometheus text format, and calls `refresh` before each rendering. Throws `port_taken`,
 * `no_permission` or `config_invalid`.
 */
export async function serveMetrics(
  registry: Pick<Registry, 'metrics' | 'contentType'>,
  refresh: () => Promise<void>,
  { host, port, trustedProxies, log, clock, foreign }: MetricsOptions,
): Promise<MetricsListener> {
  const notFound = () =>
    RankdError.withoutStack('not_found', 'This address does not exist; the metrics are at /metrics.');
  const shared = { log, clock, section, maxConnections, trustedProxies, notFound } as const;
  const server = createListener({ ...shared, ...(foreign && { foreign }) });
  const latest = sharedRendering(clock, async () => {
    await refresh();
    const text = Buffer.from(await registry.metrics());
    return { text, packed: zlib().gzipSync(text) };
  });
  server.get('/metrics', async (request, reply) => {
    const { text, packed } = await latest();
    const isPacked = acceptsEncoding(request.headers['accept-encoding'], 'gzip');
    if (isPacked) reply.header('content-encoding', 'gzip');
    return reply
      .type(registry.contentType)
      .header('vary', 'accept-encoding')
      .send(isPacked ? packed : text);
  });
  const hint = 'set metrics.port in rankd.yaml';
  const address = await listenAt(server, { section }, { host, ports: [port], hint });
  return { url: `${listenUrl(address)}/metrics`, [Symbol.asyncDispose]: () => server.close() };
}

/**
 * Renders only if the latest rendering is stale. All responses share the same bytes, so slow clients cost no extra
 * memory.
 */
function sharedRendering<T>(clock: Pick<Clock, 'monotonic'>, render: () => Promise<T>): () => Promise<T> {
  let rendering: Promise<T> | undefined;
  let staleAt = Number.POSITIVE_INFINITY;
  return () => {
    if (rendering !== undefined && clock.monotonic() < staleAt) return rendering;
    staleAt = Number.POSITIVE_INFINITY;
    rendering = render().finally(() => {
      staleAt = clock.monotonic() + renderingLifeMs;
    });
    return rendering;
  };
}
