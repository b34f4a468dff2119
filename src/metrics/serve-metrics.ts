import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { listenError } from '../base/listen-error.ts';
import { listenUrl } from '../base/listen-url.ts';
import type { Logger } from '../base/log.ts';
import { http } from '../base/node-modules.ts';

export interface MetricsListener extends AsyncDisposable {
  /** e.g. `http://127.0.0.1:9265/metrics` */
  url: string;
}

/** Serves GET /metrics in Prometheus' text format. Throws `port_taken`, `no_permission` or `config_invalid`. */
export async function serveMetrics(
  registry: Registry,
  { host, port, log }: { host: string; port: number; log: Logger },
): Promise<MetricsListener> {
  let isFailing = false; // told once: anybody may ask
  const server = http().createServer(async ({ method = '', url = '' }, response) => {
    if (url.split('?', 1)[0] !== '/metrics') return answer(response, 404, 'There is nothing here but /metrics.\n');
    if (method !== 'GET' && method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      return answer(response, 405, 'Metrics can only be read.\n');
    }
    try {
      const text = await registry.metrics();
      isFailing = false;
      response.setHeader('content-type', registry.contentType);
      answer(response, 200, text);
    } catch (error) {
      if (!isFailing) log.error({ err: error }, 'the metrics could not be gathered');
      isFailing = true;
      answer(response, 500, 'The metrics could not be gathered; the log says why.\n');
    }
  });
  server.listen(port, host);
  await once(server, 'listening').catch((cause) => {
    throw listenError(cause, { host, port, section: 'metrics', hint: 'set metrics.port in rankd.yaml' });
  });
  return {
    url: `${listenUrl(server.address() as AddressInfo)}/metrics`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function answer(response: ServerResponse, status: number, text: string): void {
  if (!response.hasHeader('content-type')) response.setHeader('content-type', 'text/plain; charset=utf-8');
  response.statusCode = status;
  response.end(text);
}
