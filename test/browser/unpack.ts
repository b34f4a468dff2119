/**
 * Unpacks the Chromium from npm into `TMPDIR`, and prints its path. Runs in a separate process, because the package
 * changes the environment.
 */
process.env['AWS_LAMBDA_JS_RUNTIME'] = 'nodejs24.x'; // also unpacks the system libraries that Chromium needs
const { default: chromium } = await import('@sparticuz/chromium');
process.stdout.write(await chromium.executablePath());
