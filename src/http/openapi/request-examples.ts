import type { Operation } from './operation.ts';

/** The request of an operation as a shell sends it, and as a script of a game does; none if it has no body. */
export function requestExamples({ path, parameters, body }: Operation): string[] {
  if (body === undefined) return [];
  const example = Object.entries(body.example ?? {});
  const needsPlace = parameters.includes('placeid');
  const takesPlace = needsPlace || parameters.includes('placeOfRequest'); // Roblox tells the place of a game server
  return [forShell(`${path}${takesPlace ? '?placeid=1' : ''}`, example), forGame(path, needsPlace, example)];
}

function forShell(address: string, example: Array<[string, unknown]>): string {
  const json = JSON.stringify(Object.fromEntries(example));
  return `curl -sw '\\n' 'http://127.0.0.1:7265${address}' -H "Authorization: Bearer $(cat my-game.key)" -d '${json}'`;
}

function forGame(path: string, needsPlace: boolean, example: Array<[string, unknown]>): string {
  const fields = example.map(
    ([name, value]) => `        ${name} = ${name === 'placeid' ? 'game.PlaceId' : JSON.stringify(value)},\n`,
  );
  return `local HttpService = game:GetService("HttpService")
local response = HttpService:RequestAsync({
    Url = "https://rankd.example.com${path}${needsPlace ? '?placeid=" .. game.PlaceId' : '"'},
    Method = "POST",
    Headers = {
        Authorization = HttpService:GetSecret("rankd"):AddPrefix("Bearer "),
        ["Content-Type"] = "application/json",
    },
    Body = HttpService:JSONEncode({
${fields.join('')}    }),
})
print(response.StatusCode, response.Body)`;
}
