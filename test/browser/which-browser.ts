/** The browser for the tests: the one that RANKD_BROWSER names, or the one from npm on Linux x64. */
export const browser: { path: string } | 'from npm' | undefined = which(process.env['RANKD_BROWSER']);

function which(path: string | undefined): typeof browser {
  if (path !== undefined && path !== '') return { path };
  return process.platform === 'linux' && process.arch === 'x64' ? 'from npm' : undefined;
}
