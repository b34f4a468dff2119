import type { FastifyInstance } from 'fastify';
import { greeting, greetingPage } from '../greeting.ts';

/**
 * GET /: what answers here. GET /openapi.json: the API's description for programs. GET /docs: the same for people. The last two are made
 * once, on the first request, and every answer shares the bytes: callers that do not read theirs must not cost a copy each.
 */
export function docsRoutes(server: FastifyInstance): void {
  server.get('/', async (request, reply) => {
    request.notes.level = 'debug';
    reply.header('vary', 'accept');
    const { accept = '' } = request.headers;
    const wantsJson = accept.includes('application/json') && !accept.includes('text/html');
    return wantsJson ? greeting : reply.headers(pageHeaders).type('text/html; charset=utf-8').send(greetingPage);
  });
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
      .headers({ ...pageHeaders, 'content-security-policy': docsPolicy() })
      .type('text/html; charset=utf-8')
      .send(page);
  });
}

const pageHeaders = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};
