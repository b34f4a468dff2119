/**
 * An address below which a service answers, without a slash at its end. `undefined` if the text is none, or one over which a key could be
 * read on its way.
 */
export function asBaseUrl(text: string): string | undefined {
  if (!URL.canParse(text) || /[?#@\s]/.test(text)) return undefined;
  const { protocol, hostname, href } = new URL(text);
  const isSafe = protocol === 'https:' || (protocol === 'http:' && isLoopbackName(hostname));
  return isSafe ? href.replace(/\/+$/, '') : undefined;
}

/** Of a URL, which writes every IPv4 address as four numbers. */
function isLoopbackName(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}
