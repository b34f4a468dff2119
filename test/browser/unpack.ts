/** Unpacks the Chromium that came with npm into `TMPDIR`, and prints where it lies. A process of its own: the package changes its environment. */
process.env['AWS_LAMBDA_JS_RUNTIME'] = 'nodejs24.x'; // makes it unpack the system libraries that it needs as well
const { default: chromium } = await import('@sparticuz/chromium');
process.stdout.write(await chromium.executablePath());
