#!/usr/bin/env node
// Runs `serve --console` for the panels of bot hosts, which start a JavaScript file and have a console, but no shell.
import { fileURLToPath } from 'node:url';

process.argv.splice(1, 1, fileURLToPath(new URL('rankd.js', import.meta.url)), 'serve', '--console');
process.env.PORT ||= process.env.SERVER_PORT ?? '';
await import('./rankd.js');
