/** A response to send; the transport adds `content-length`. */
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

export class Refused extends Error {
  readonly answer: FakeAnswer;

  constructor(answer: FakeAnswer) {
    super(answer.body);
    this.answer = answer;
  }
}

/** Builds an error in the v2 envelope. Messages are made up where Roblox's are unknown. */
export function v2Error(status: number, code: string, message: string, headers: Record<string, string> = {}): Refused {
  return new Refused(json(status, { code, message }, headers));
}

export const invalidArgument = (message: string): Refused => v2Error(400, 'INVALID_ARGUMENT', message);
export const permissionDenied = (message: string): Refused => v2Error(403, 'PERMISSION_DENIED', message);
export const notFound = (message: string): Refused => v2Error(404, 'NOT_FOUND', message);

/** Builds an error in the envelope of the gateway and the legacy services. */
export function gatewayError(status: number, code: number, message: string): Refused {
  return new Refused(json(status, { errors: [{ code, message }] }));
}
