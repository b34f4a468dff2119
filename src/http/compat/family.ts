import type { FastifyRequest } from 'fastify';
import type { ErrorCode } from '../../base/errors.ts';
import type { Config } from '../../config/config.ts';

/** A service whose requests rankd answers as that service would. */
export interface Family {
  name: Config['compat'][number];
  /** The key in a request of its clients. */
  secret: (request: FastifyRequest) => string | undefined;
  /** The statuses of its errors where they differ from rankd's. */
  statuses: Partial<Record<ErrorCode, number>>;
  /** The fields of an error that its clients read, in addition to rankd's. */
  errorFields: (error: { status: number; message: string }) => Record<string, unknown>;
}
