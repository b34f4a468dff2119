import { createHash } from 'node:crypto';
import { reasons } from '../../base/errors.ts';
import { version } from '../../base/version.ts';
import { byStatus, type JsonSchema, toJsonSchema } from './document.ts';
import { meanings } from './meanings.ts';
import type { Content, Operation } from './operation.ts';
import { operations } from './operations.ts';
import { answerHeaders, headersOfAll, parameters, schemas } from './parts.ts';
import { requestExamples } from './request-examples.ts';

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; border-bottom: 1px solid; padding-bottom: .25rem; }
code, pre { font: .9em/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid; border-radius: .25rem; }
table { border-collapse: collapse; width: 100%; }
code { overflow-wrap: anywhere; }
th, td { text-align: left; vertical-align: top; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid; }
@media (max-width: 40rem) {
  tbody, tr, td { display: block; }
  tr { border-bottom: 1px solid; padding: .5rem 0; }
  td { border: 0; padding: 0; }
  tr:has(th) { display: none; }
}
`;

/** The page loads nothing and runs nothing. Only its own style is allowed. */
export function docsPolicy(): string {
  return [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** The API's description as one HTML page that works offline. */
export function docsPage(): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>rankd API</title><style>${style}</style></head>
<body>
<h1>rankd ${escaped(version)}</h1>
<p>Operations on ranks need the header <code>Authorization: Bearer &lt;game key&gt;</code>; on <code>/v2</code> the key can also
stand by itself in <code>x-api-key</code>. Every answer that is not 200 is one JSON object
with the fields of <a href="#errors">an error</a>. For programs: <a href="openapi.json">openapi.json</a>.</p>
<ul>
${operations.map((operation) => `<li><a href="#${anchorOf(operation)}">${escaped(operation.summary)}</a> ${code(titleOf(operation))}</li>`).join('\n')}
<li><a href="#errors">Errors</a></li>
</ul>
${operations.map(section).join('\n')}
<h2 id="errors">Errors</h2>
${fields(toJsonSchema(schemas.Error))}
${headersTable([...headersOfAll, 'Retry-After'])}
</body>
</html>
`;
}

function section(operation: Operation): string {
  const { summary, description, body, answer, jsonAnswer } = operation;
  const asked = operation.parameters.map((name) => parameters[name]);
  return `<h2 id="${anchorOf(operation)}">${escaped(summary)}</h2>
<p>${code(titleOf(operation))}</p>
<p>${prose(description)}</p>
${
  asked.length === 0
    ? ''
    : table(
        ['', '', ''],
        asked.map(({ name, in: where, description }) => [code(name), where, prose(description)]),
      )
}
${
  body === undefined
    ? ''
    : `<h3>Body</h3>\n${content(body)}\n${requestExamples(operation)
        .map((text) => `<pre>${escaped(text)}</pre>`)
        .join('\n')}`
}
<h3>200</h3>
${content(answer)}${jsonAnswer === undefined ? '' : `\n${content(jsonAnswer)}`}
${headersTable(operation.answerHeaders)}
<h3>Other answers</h3>
${errors(operation)}`;
}

function content({ description, schema, example }: Content): string {
  const described = schema === undefined ? '' : fields(toJsonSchema(schemas[schema]));
  return `<p>${prose(description)}</p>${described}${example === undefined ? '' : `<pre>${escaped(JSON.stringify(example))}</pre>`}`;
}

function fields({ properties, required = [] }: JsonSchema): string {
  if (properties === undefined) return '';
  const rows = Object.entries(properties).map(([name, { description = '', ...schema }]) => [
    code(name),
    typeOf(schema),
    required.includes(name) ? '' : 'optional',
    prose(description),
  ]);
  return table(['field', 'type', '', ''], rows);
}

/** In words, such as `whole number or text`. */
function typeOf({ type, anyOf, enum: values }: JsonSchema): string {
  if (Array.isArray(anyOf)) return [...new Set((anyOf as JsonSchema[]).map(typeOf))].join(' or ');
  if (Array.isArray(values)) return values.map((value) => code(JSON.stringify(value))).join(' or ');
  return typeWords[type ?? ''] ?? '';
}

const typeWords: Record<string, string> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  array: 'list',
  object: 'object',
  null: 'null',
};

function headersTable(names: Operation['answerHeaders']): string {
  if (names.length === 0) return '';
  return table(
    ['header', ''],
    names.map((name) => [code(name), prose(answerHeaders[name].description)]),
  );
}

function errors(operation: Operation): string {
  const rows = byStatus(operation).flatMap(([status, codes]) =>
    codes.map((name) => [String(status), code(name), escaped(reasons[name]), prose(meanings[name])]),
  );
  return table(['status', 'code', 'error', 'when'], rows);
}

function titleOf({ method, path }: Operation): string {
  return `${method.toUpperCase()} ${path}`;
}

function anchorOf({ method, path }: Operation): string {
  return `${method}${path.replaceAll('/', '-')}`;
}

/** The cells must be HTML already. */
function table(headings: string[], rows: string[][]): string {
  const row = (cells: string[], tag: string) => `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`;
  return `<table>\n${[row(headings, 'th'), ...rows.map((cells) => row(cells, 'td'))].join('\n')}\n</table>`;
}

function code(text: string): string {
  return `<code>${escaped(text)}</code>`;
}

/** Text with `code` in backticks. */
function prose(text: string): string {
  return escaped(text).replaceAll(/`(.+?)`/g, '<code>$1</code>');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
