import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { canPin } from './processes.ts';

export function machine(): Record<string, string> {
  const [first] = cpus();
  return {
    machine: `${cpus().length} × ${first?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `${type()} ${release().split('-')[0]}`,
    cores: canPin ? 'server and load on separate cores' : 'server and load on the same cores',
    'Node.js': process.version,
    ...Object.fromEntries(['fastify', 'better-sqlite3', 'autocannon'].map((name) => [name, versionOf(name)])),
  };
}

function versionOf(name: string): string {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
