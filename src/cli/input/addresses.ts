/** Where the id stands in the addresses of each kind of page. */
const pages = {
  user: [/\/users\/(\d+)/],
  group: [/\/(?:communities|groups|share\/g)\/(\d+)/],
  place: [/\/places\/(\d+)/, /\/games\/(\d+)/, /[?&]placeid=(\d+)/i],
  experience: [/\/experiences\/(\d+)/],
};

/** The id in a pasted address of roblox.com; `undefined` if the text is no address of such a page. */
export function idInAddress(kind: keyof typeof pages, text: string): number | undefined {
  const [, path] = /^(?:https?:\/\/)?(?:[\w-]+\.)?roblox\.com(\/[^#]*)/i.exec(text.trim()) ?? [];
  if (path === undefined) return undefined;
  const [digits] = pages[kind].flatMap((page) => page.exec(path)?.[1] ?? []);
  const id = Number(digits);
  return id > 0 && Number.isSafeInteger(id) ? id : undefined;
}
