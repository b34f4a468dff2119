import type { FastifyInstance } from 'fastify';

/** GET /openapi.json: the API's description for programs. GET /docs: the same for people. Both are made once, on the first request. */
export function docsRoutes(server: FastifyInstance): void {
  let json: string | undefined;
  server.get('/openapi.json', async (_request, reply) => {
    const { openApiDocument } = await import('../openapi/document.ts');
    json ??= JSON.stringify(openApiDocument());
    return reply.type('application/json; charset=utf-8').send(json);
  });
  let page: string | undefined;
  server.get('/docs', async (_request, reply) => {
    const { docsPage, docsPolicy } = await import('../openapi/docs-page.ts');
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
