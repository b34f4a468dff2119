/**
 * Unpacks the Chromium from npm into `TMPDIR`, and prints its path. In a separate process, because the package changes
 * its environment.
 */
process.env['AWS_LAMBDA_JS_RUNTIME'] = 'nodejs24.x'; // makes it unpack the system libraries that it needs as well
const { default: chromium } = await import('@sparticuz/chromium');
process.stdout.write(await chromium.executablePath());
