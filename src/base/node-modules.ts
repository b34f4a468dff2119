import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

/**
 * Modules of Node.js that most commands never use: each is loaded by its first call. They are loaded by `require`,
 * because an import evaluates all exports of a module, which for `http` includes `fetch` and WebSocket.
 */
export const crypto = lazily<typeof import('node:crypto')>('node:crypto');
export const http = lazily<typeof import('node:http')>('node:http');
export const https = lazily<typeof import('node:https')>('node:https');
export const zlib = lazily<typeof import('node:zlib')>('node:zlib');

function lazily<Module>(name: string): () => Module {
  let loaded: Module | undefined;
  return () => (loaded ??= load(name) as Module);
}
