/** An HTTP answer, read to its end. */
export interface Answer {
  status: number;
  headers: Headers;
  /** `undefined` if it could not be read: it was cut short, came too late, or is longer than allowed. */
  body: string | undefined;
}

/** Sends one request and reads its whole answer, whose body may have `maxBodyBytes`. Throws if there is no answer at all. */
export async function fetchAnswer(
  fetch: typeof globalThis.fetch,
  url: string,
  init: RequestInit,
  maxBodyBytes: number,
): Promise<Answer> {
  const { status, headers, body } = await fetch(url, init);
  const text = body === null ? '' : await readText(body, maxBodyBytes).catch(() => undefined);
  return { status, headers, body: text };
}

/** Throwing inside the loop cancels the stream, and with it the rest of the download. */
async function readText(body: ReadableStream<Uint8Array>, maxBodyBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > maxBodyBytes) throw new Error(`the answer is longer than ${maxBodyBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
