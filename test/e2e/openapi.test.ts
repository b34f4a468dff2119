import { expect, test } from 'vitest';
import { openApiDocument } from '../../src/http/openapi/document.ts';
import { routes } from '../../src/http/routes/all.ts';
import { runCli } from '../support/run-cli.ts';

test.each([[['openapi']], [['openapi', '--json']]])('rankd %j prints the document unchanged', async (args) => {
  const { code, stdout, stderr } = await runCli(args);
  expect([code, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(openApiDocument(routes))));
});
