import Fastify from 'fastify';

/**
 * A bare Fastify server that parses the body as rankd does and returns a constant JSON string, to measure the minimum
 * cost of a verification. It is plain JavaScript, because Node.js's type stripper would use memory.
 */
const server = Fastify();
const utf8 = new TextDecoder('utf-8', { fatal: true });
server.removeAllContentTypeParsers();
server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
  done(null, JSON.parse(utf8.decode(body)));
});
server.post('/v1/apikey', async (_request, reply) => reply.type('application/json; charset=utf-8').send('"ws_bare"'));
const url = await server.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ url })}\n`);
