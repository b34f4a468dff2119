import { shorten } from '../../base/text.ts';

/** What an error body says, whichever of the platform's formats it came in. */
export interface Problem {
  /** e.g. `PERMISSION_DENIED`, or a number as text; absent if the format has none. */
  code: string | undefined;
  /** Ready to be shown: one line of at most 200 characters. */
  message: string;
}

const maxMessageLength = 200;

/**
 * Reads an error body in any of these formats: the gateway's `errors` list, the v2 form (`code`, `message`), the older form
 * (`error`, `message`), a problem document (`title`). Anything else is taken as text. Source: Open Cloud's page on errors.
 */
export function problemOf(body: string): Problem {
  const json = parse(body);
  if (json === undefined) return { code: undefined, message: isPage(body) ? 'a page instead of JSON' : clean(body) };
  const errors = json['errors'];
  const first = Array.isArray(errors) ? record(errors[0]) : undefined;
  if (first !== undefined) return problem(first['code'], first['message']);
  return problem(json['code'] ?? json['error'], json['message'] ?? json['title'] ?? json['error']);
}

function problem(code: unknown, message: unknown): Problem {
  return { code: text(code), message: text(message) ?? '' };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? clean(String(value)) : undefined;
}

/** Control and format characters could forge log lines or hide text in a terminal. */
function clean(raw: string): string {
  const line = raw
    .slice(0, maxMessageLength * 4)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
  return shorten(line, maxMessageLength);
}

function isPage(body: string): boolean {
  return body.trimStart().startsWith('<');
}

function parse(body: string): Record<string, unknown> | undefined {
  try {
    return record(JSON.parse(body));
  } catch {
    return undefined; // not JSON
  }
}

function record(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
}
