import type { FastifyReply } from 'fastify';
import * as z from 'zod';
import { isSimulatedGroup } from '../../core/group-title.ts';
import { proofHeader, proofOf, questionHeader } from '../../core/proof.ts';
import { callWithin } from '../../ports/platform.ts';
import { requireReady } from '../../usecases/upkeep/readiness.ts';
import { type Exchange, isDescribed, platformCodes, type Route, route } from '../route.ts';

const readyWithinMs = 3_000;

const greeting = {
  message: 'rankd is running. Games send POST /v1/ranker with a game key; /docs describes the API.',
  docs: '/docs',
  openapi: '/openapi.json',
} as const;

/** The links are relative, because a proxy can serve rankd under a different path. */
const greetingPage = Buffer.from(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>rankd</title></head>
<body>
<h1>rankd is running</h1>
<p>It changes ranks in one Roblox group for the games that are allowed to. These games
send <code>POST /v1/ranker</code> with a game key.</p>
<p>See the <a href="docs">API documentation</a>, the <a href="openapi.json">OpenAPI document</a>,
and <a href="readyz">whether rankd can change ranks now</a>.</p>
</body>
</html>
`);

/** The routes about rankd itself, which need no key. */
export const serviceRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/',
    docs: {
      id: 'greeting',
      summary: 'Greeting',
      description: 'Shows anyone who opens the address in a browser that rankd is running.',
    },
    answers: [
      { type: 'text/html; charset=utf-8', description: 'A short page; with `Accept: application/json`, JSON.' },
      {
        name: 'Greeting',
        description: 'With `Accept: application/json`:',
        schema: z.strictObject({
          message: z.string().describe('A short description of rankd.'),
          docs: z.literal('/docs').describe('The address of the API documentation.'),
          openapi: z.literal('/openapi.json').describe('The address of the OpenAPI document.'),
        }),
        example: greeting,
      },
    ],
    handler: async (exchange) => {
      const { request, reply } = exchange;
      reply.header('vary', 'accept');
      const { accept = '' } = request.headers;
      const wantsJson = accept.includes('application/json') && !accept.includes('text/html');
      if (!wantsJson) return sendPage(exchange, greetingPage, "default-src 'none'");
      request.notes.level = 'debug';
      return reply.send(greeting);
    },
  }),
  route({
    method: 'GET',
    path: '/healthz',
    docs: {
      id: 'health',
      summary: 'Check that rankd is running',
      description: 'Answers as long as the process is running.',
    },
    answers: [
      {
        name: 'Health',
        description: 'rankd is running.',
        schema: z.strictObject({ status: z.literal('ok') }),
        example: { status: 'ok' },
      },
    ],
    answerHeaders: ['x-rankd-proof'],
    handler: async (exchange) => {
      prove(exchange);
      return { status: 'ok' } as const;
    },
  }),
  route({
    method: 'GET',
    path: '/readyz',
    docs: {
      id: 'readiness',
      summary: 'Check that rankd can change ranks',
      description:
        'Checks that the database, Roblox and the Roblox key work, that no setting prevents every change (409 `configuration_misfit`), and that rankd is not stopping. If the last database write failed, it tries another one.',
    },
    answers: [
      {
        name: 'Readiness',
        description: 'rankd can change ranks.',
        schema: z.strictObject({
          status: z.literal('ready'),
          simulated: z.literal(true).optional().describe('Present if the group is simulated: nothing touches Roblox.'),
          misfits: z
            .array(z.string())
            .optional()
            .describe('Present if a setting no longer matches a role of the group: one sentence for each.'),
        }),
        example: { status: 'ready' },
      },
    ],
    answerHeaders: ['x-rankd-proof'],
    codes: [...platformCodes, 'configuration_misfit', 'store_unavailable', 'shutting_down'],
    handler: async (exchange) => {
      prove(exchange);
      const { app } = exchange;
      using call = callWithin(app.clock, readyWithinMs, 'health');
      await requireReady(app, call);
      const misfits = app.group.misfits?.map(({ message }) => message) ?? [];
      return {
        status: 'ready' as const,
        ...(isSimulatedGroup(app.group.title) && { simulated: true as const }),
        ...(misfits.length > 0 && { misfits }),
      };
    },
  }),
  route({
    method: 'GET',
    path: '/openapi.json',
    docs: {
      id: 'openapi',
      summary: 'OpenAPI document',
      description: "This API's description in OpenAPI 3.1; `rankd openapi` prints the same document.",
    },
    answers: [{ description: 'An OpenAPI document.' }],
    handler: async ({ api, request, reply }) => {
      request.notes.level = 'debug';
      const { openApiDocument } = await import('../openapi/document.ts');
      json ??= Buffer.from(JSON.stringify(openApiDocument(api.routes)));
      return reply.type('application/json; charset=utf-8').send(json);
    },
  }),
  route({
    method: 'GET',
    path: '/docs',
    docs: {
      id: 'docs',
      summary: 'API documentation',
      description: "This API's description as a web page.",
    },
    answers: [{ type: 'text/html; charset=utf-8', description: 'One page that loads nothing else.' }],
    handler: async (exchange) => {
      const { docsPage, docsPolicy } = await import('../openapi/docs-page.ts');
      page ??= Buffer.from(docsPage(exchange.api.routes.filter(isDescribed)));
      return sendPage(exchange, page, docsPolicy());
    },
  }),
];

/** Created on the first request and then shared, so that unread responses do not each hold their own copy. */
let json: Buffer | undefined;
let page: Buffer | undefined;

function sendPage({ request, reply }: Exchange, html: Buffer, contentPolicy: string): FastifyReply {
  request.notes.level = 'debug';
  return reply
    .headers({
      'content-security-policy': `${contentPolicy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    })
    .type('text/html; charset=utf-8')
    .send(html);
}

/** Adds a header that proves to `rankd doctor --url` that this daemon responded. */
export function prove({ app, request, reply }: Exchange): void {
  request.notes.level = 'debug'; // monitoring polls every few seconds
  const { [questionHeader]: question, authorization } = request.headers;
  const proof = proofOf(app.identity, { question, authorization });
  if (proof !== undefined) reply.header(proofHeader, proof);
}
