import type { FastifyInstance } from 'fastify';
import { docsPage, docsPolicy } from '../openapi/docs-page.ts';
import { openApiDocument } from '../openapi/document.ts';

/** GET /openapi.json: the API's description for programs. GET /docs: the same for people. Both are made once, on the first request. */
export function docsRoutes(server: FastifyInstance): void {
  let json: string | undefined;
  server.get('/openapi.json', async (_request, reply) => {
    json ??= JSON.stringify(openApiDocument());
    return reply.type('application/json; charset=utf-8').send(json);
  });
  let page: string | undefined;
  server.get('/docs', async (_request, reply) => {
    page ??= docsPage();
    return reply
      .headers({
        'content-security-policy': docsPolicy(),
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      })
      .type('text/html; charset=utf-8')
      .send(page);
  });
}
