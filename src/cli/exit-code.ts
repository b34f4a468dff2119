/** Thrown by a command whose answer is an exit code: it has printed all there is to say. */
export class ExitCode extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`exit ${code}`);
    this.code = code;
  }
}
