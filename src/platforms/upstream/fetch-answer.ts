/** An HTTP answer, read to its end. */
export interface Answer {
  status: number;
  headers: Headers;
  body: string;
}

/** Sends one request and reads its whole answer. Throws if the body is longer than `maxBodyBytes`, whatever length it declared. */
export async function fetchAnswer(
  fetch: typeof globalThis.fetch,
  url: string,
  init: RequestInit,
  maxBodyBytes: number,
): Promise<Answer> {
  const { status, headers, body } = await fetch(url, init);
  return { status, headers, body: body === null ? '' : await readText(body, maxBodyBytes) };
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
