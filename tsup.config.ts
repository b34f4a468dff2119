import { defineConfig } from 'tsup';

// One bundle with lazily loaded chunks: a command that does not serve never parses fastify, zod or pino.
export default defineConfig({
  entry: ['src/main.ts'],
  format: 'esm',
  target: 'node22',
  platform: 'node',
  splitting: true,
  clean: true,
  noExternal: [/^(?!better-sqlite3$)[a-z@]/],
  external: ['better-sqlite3'],
  // Bundled CommonJS packages call require(); an ES module has none of its own.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
});
