import { Ajv2020 } from 'ajv/dist/2020.js';
import { openApiDocument } from '../../src/http/openapi/document.ts';
import { pathOf } from '../../src/http/request-log.ts';
import { routes } from '../../src/http/routes/all.ts';

export interface RecordedAnswer {
  method: string;
  /** Absolute, or relative to the root. */
  url: string;
  status: number;
  /** The names are in lower case. */
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

interface Described {
  headers: Record<string, unknown>;
  content: Record<string, { schema?: unknown }>;
}

type Paths = Record<string, Record<string, { responses: Record<string, Described> }>>;

/** The responses that the tests of this worker have checked, e.g. `post /v1/ranker 403 rank_not_allowed`. */
export const checkedResponses = new Set<string>();

/** Loaded on import, before any daemon starts, because loading the schemas later would delay a request. */
const { ajv, paths } = load();

/** Throws if a response does not match the OpenAPI document. */
export function expectDescribed(answer: RecordedAnswer): void {
  const { url, status, headers, text } = answer;
  const verb = answer.method === 'HEAD' ? 'get' : answer.method.toLowerCase();
  const path = decoded(pathOf(url));
  const operation = paths[path]?.[verb];
  const response = operation?.responses[status];
  const problems: string[] = [];
  if (operation !== undefined && response === undefined) problems.push('is not described');
  if (operation === undefined && status < 400) problems.push('succeeds, but is not described');

  const [type = ''] = String(headers['content-type']).split(';');
  const isRead = answer.method !== 'HEAD';
  if (response === undefined) {
    if (isRead) problems.push(...flaws('#/components/schemas/Error', JSON.parse(text)));
  } else {
    const at = `#/paths/${pointer(path)}/${verb}/responses/${status}`;
    const content = Object.entries(response.content).find(([described]) => described.split(';')[0] === type);
    if (content === undefined) problems.push(`has the type ${type}`);
    else if (isRead && content[1].schema !== undefined)
      problems.push(...flaws(`${at}/content/${pointer(content[0])}/schema`, JSON.parse(text)));
    problems.push(...headerFlaws(headers, Object.keys(response.headers)));
  }
  if (headers['x-request-id'] === undefined) problems.push('has no x-request-id');
  if (problems.length > 0) throw new Error(`${answer.method} ${url} ${status} ${problems.join('; ')}: ${text}`);
  const code = status === 200 || !isRead ? '' : ` ${JSON.parse(text).code}`;
  checkedResponses.add(`${verb} ${path} ${status}${code}`);
}

/** Throws if a response body does not match the OpenAPI document's error schema. */
export function expectDescribedError(text: string): void {
  const problems = flaws('#/components/schemas/Error', JSON.parse(text));
  if (problems.length > 0) throw new Error(`${problems.join('; ')}: ${text}`);
}

/**
 * Returns the flaws in the headers that rankd itself defines: undescribed headers, and values that do not match their
 * schemas.
 */
function headerFlaws(headers: RecordedAnswer['headers'], names: string[]): string[] {
  const own = Object.keys(headers).filter((name) =>
    /^(x-(?!content-type-options)|ratelimit|idempotent|retry-after|deprecation|sunset)/.test(name),
  );
  return own.flatMap((name) => {
    const known = names.find((one) => one.toLowerCase() === name);
    if (known === undefined) return [`has the header ${name}, which is not described`];
    const value = headers[name];
    const actual = /^\d+$/.test(String(value)) ? Number(value) : value;
    return flaws(`#/components/headers/${known}/schema`, actual).map((flaw) => `${name} ${flaw}`);
  });
}

function flaws(ref: string, value: unknown): string[] {
  const validate = ajv.getSchema(`rankd${ref}`);
  if (validate === undefined) throw new Error(`there is no schema at ${ref}`);
  if (validate(value)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

function load(): { ajv: Ajv2020; paths: Paths } {
  const document = openApiDocument(routes);
  // Another test validates the document itself.
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  ajv.addSchema(document, 'rankd');
  return { ajv, paths: document.paths as unknown as Paths };
}

function pointer(step: string): string {
  return encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'));
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
