import type { FastifyRequest } from 'fastify';
import type { ErrorCode } from '../../base/errors.ts';
import type { Config } from '../../config/config.ts';

/** A service that rankd imitates: rankd accepts its clients' requests and responds in its format. */
export interface Family {
  name: Config['compat'][number];
  /** Returns the game key from a client's request. */
  secret: (request: FastifyRequest) => string | undefined;
  /** The error statuses that differ from rankd's. */
  statuses: Partial<Record<ErrorCode, number>>;
  /** The error fields that the service's clients read, in addition to rankd's. */
  errorFields: (error: { status: number; message: string }) => Record<string, unknown>;
}
