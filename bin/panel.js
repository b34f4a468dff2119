#!/usr/bin/env node
// The start file for the panel of a bot host, which runs a JavaScript file and has a console, but no shell: `serve --console`.
import { fileURLToPath } from 'node:url';

process.argv.splice(1, 1, fileURLToPath(new URL('rankd.js', import.meta.url)), 'serve', '--console');
process.env.PORT ||= process.env.SERVER_PORT ?? '';
await import('./rankd.js');
