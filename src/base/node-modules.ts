import process from 'node:process';

/** Most commands never use these Node.js modules. The first call of each function loads its module. */
export const crypto = lazily<typeof import('node:crypto')>('node:crypto');
export const fsPromises = lazily<typeof import('node:fs/promises')>('node:fs/promises');
export const http = lazily<typeof import('node:http')>('node:http');
export const https = lazily<typeof import('node:https')>('node:https');
export const readline = lazily<typeof import('node:readline')>('node:readline');
export const workerThreads = lazily<typeof import('node:worker_threads')>('node:worker_threads');
export const zlib = lazily<typeof import('node:zlib')>('node:zlib');

function lazily<Module>(name: string): () => Module {
  let loaded: Module | undefined;
  return () => (loaded ??= process.getBuiltinModule(name) as Module);
}
