import type { z } from 'zod';
import type { greetingAnswer } from './answers.ts';

/** What `GET /` says to programs. */
export const greeting: z.infer<typeof greetingAnswer> = {
  message: 'rankd is running. Games send POST /v1/ranker with a game key; /docs describes the API.',
  docs: '/docs',
  openapi: '/openapi.json',
};

/** What it says to people. Its links hold behind a proxy that serves rankd below another path, too. */
export const greetingPage = Buffer.from(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>rankd</title></head>
<body>
<h1>rankd is running</h1>
<p>It changes ranks in one Roblox group for the games that are allowed to. There is nothing to click here:
games send <code>POST /v1/ranker</code> with a game key.</p>
<p><a href="docs">What the API does</a>, <a href="openapi.json">the same for programs</a>,
and <a href="readyz">whether ranks can be changed now</a>.</p>
</body>
</html>
`);
