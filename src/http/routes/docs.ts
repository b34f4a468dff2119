import type { FastifyInstance } from 'fastify';

/** GET /openapi.json: the API's description for programs. GET /docs: the same for people. Both are made once, on the first request,
 * and every answer shares the bytes: callers that do not read theirs must not cost a copy each. */
export function docsRoutes(server: FastifyInstance): void {
  let json: Buffer | undefined;
  server.get('/openapi.json', async (request, reply) => {
    request.notes.level = 'debug';
    const { openApiDocument } = await import('../openapi/document.ts');
    json ??= Buffer.from(JSON.stringify(openApiDocument()));
    return reply.type('application/json; charset=utf-8').send(json);
  });
  let page: Buffer | undefined;
  server.get('/docs', async (request, reply) => {
    request.notes.level = 'debug';
    const { docsPage, docsPolicy } = await import('../openapi/docs-page.ts');
    page ??= Buffer.from(docsPage());
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
