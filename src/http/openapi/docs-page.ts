import { createHash } from 'node:crypto';
import type * as z from 'zod';
import { version } from '../../base/version.ts';
import type { Content, DescribedRoute, Route } from '../route.ts';
import { anchorOf, errorRows, errorSchema, fieldRows, headerRows, parameterRows, requestExamples } from './document.ts';

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; border-bottom: 1px solid; }
code, pre { font: .9em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; padding: .75rem; border: 1px solid; }
th, td { text-align: left; vertical-align: top; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid; }
@media (max-width: 40rem) { tbody, tr, td { display: block; } td { border: 0; } tr:has(th) { display: none; } }
`;

export const docsPolicy = () =>
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`;

/** Renders the API documentation as one HTML page that works offline. */
export const docsPage = (routes: readonly DescribedRoute[]) => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>rankd API</title><style>${style}</style></head>
<body>
<h1>rankd ${prose(version)}</h1>
<p>Rank operations require the header <code>Authorization: Bearer &lt;game key&gt;</code>; <code>/v2</code> also accepts the key
in <code>x-api-key</code>. Every answer that is not 200 is one JSON object with the fields of <a href="#errors">an error</a>.
For programs: <a href="openapi.json">openapi.json</a>.</p>
<ul>${routes.map((route) => `<li>${link(route)} ${titleOf(route)}</li>`).join('\n')}\n<li><a href="#errors">Errors</a></li></ul>
${routes.map(section).join('\n')}
<h2 id="errors">Errors</h2>
${fieldTable(errorSchema)}
${table('header, ', headerRows())}
</body>
</html>
`;

function section(route: DescribedRoute): string {
  const { docs, body, answers = [] } = route;
  return `<h2 id="${anchorOf(route)}">${prose(docs.summary)}</h2>
<p>${titleOf(route)}</p>\n<p>${prose(docs.description)}</p>
${table('parameter,in, ', parameterRows(route))}
${body === undefined ? '' : `<h3>Body</h3>\n${content({ ...body, example: undefined })}`}
${requestExamples(route).map(pre).join('\n')}
<h3>200</h3>\n${answers.map(content).join('\n')}\n${table('header, ', headerRows(route))}
<h3>Other answers</h3>\n${table('status,code,error,when', errorRows(route))}`;
}

const content = ({ description, schema, example }: Content) =>
  `<p>${prose(description)}</p>${schema ? fieldTable(schema) : ''}${example ? pre(JSON.stringify(example)) : ''}`;
const fieldTable = (schema: z.ZodType) => table('field,type, , ', fieldRows(schema));

function table(headings: string, rows: string[][]): string {
  const cells = (tag: string, texts: string[]) => texts.map((text) => `<${tag}>${prose(text)}</${tag}>`).join('');
  const lines = [cells('th', headings.split(',')), ...rows.map((row) => cells('td', row))];
  return rows.length === 0 ? '' : `<table>${lines.map((line) => `<tr>${line}</tr>`).join('\n')}</table>`;
}

const link = (route: DescribedRoute) => `<a href="#${anchorOf(route)}">${prose(route.docs.summary)}</a>`;
const titleOf = ({ method, path }: Route) => `<code>${method} ${path}</code>`;
const pre = (text: string) => `<pre>${escaped(text)}</pre>`;
const prose = (text: string) => escaped(text).replaceAll(/`(.+?)`/g, '<code>$1</code>');
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
