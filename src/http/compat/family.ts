import type { FastifyRequest } from 'fastify';
import type { ErrorCode } from '../../base/errors.ts';
import type { Config } from '../../config/config.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The other service that the route stands in for: it is only there if the configuration names it. */
    family?: Family;
  }
}

/** Another service whose requests rankd answers as that service would. */
export interface Family {
  name: Config['compat'][number];
  /** Where its clients put the key. */
  secret: (request: FastifyRequest) => string | undefined;
  /** The statuses that it answers with where rankd has others. What it knows nothing of keeps rankd's. */
  statuses: Partial<Record<ErrorCode, number>>;
  /** The fields of an error that its clients look at, beside those of rankd. */
  errorFields: (error: { status: number; message: string }) => Record<string, unknown>;
}
