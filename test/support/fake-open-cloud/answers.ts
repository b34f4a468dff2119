/** An answer to send; `headers` in addition to those of the transport. */
export interface FakeAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): FakeAnswer {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    body: JSON.stringify(body),
  };
}

/** Ends a request with an error answer. */
export class Refused extends Error {
  readonly answer: FakeAnswer;

  constructor(answer: FakeAnswer) {
    super(answer.body);
    this.answer = answer;
  }
}

/** The v2 envelope. If the live text is unknown, the text is made up. */
export function v2Error(status: number, code: string, message: string, headers: Record<string, string> = {}): Refused {
  return new Refused(json(status, { code, message }, headers));
}

export const invalidArgument = (message: string): Refused => v2Error(400, 'INVALID_ARGUMENT', message);
export const permissionDenied = (message: string): Refused => v2Error(403, 'PERMISSION_DENIED', message);
export const notFound = (message: string): Refused => v2Error(404, 'NOT_FOUND', message);

/** The envelope of the gateway and the legacy services. */
export function gatewayError(status: number, code: number, message: string): Refused {
  return new Refused(json(status, { errors: [{ code, message }] }));
}
