#!/usr/bin/env node
// Runs `serve --console` for the control panels of bot hosts, which can start a JavaScript file and offer a console,
// but no shell.
import { fileURLToPath } from 'node:url';

process.argv.splice(1, 1, fileURLToPath(new URL('rankd.js', import.meta.url)), 'serve', '--console');
process.env.PORT ||= process.env.SERVER_PORT ?? '';
await import('./rankd.js');
