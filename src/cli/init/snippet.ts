/** A server script for a game that changes a rank through rankd; `url` is where the game reaches it. */
export function luauSnippet(url: string): string {
  return `-- ServerScriptService. Allow HTTP requests in the game's settings, and keep the key in a secret named "rankd".
local HttpService = game:GetService("HttpService")
local key = HttpService:GetSecret("rankd"):AddPrefix("Bearer ")

local function setRank(ranker: Player, rankee: Player, newRank: number): (boolean, string)
    local ok, response = pcall(HttpService.RequestAsync, HttpService, {
        Url = "${url}/v1/ranker?placeid=" .. game.PlaceId,
        Method = "POST",
        Headers = { Authorization = key, ["Content-Type"] = "application/json" },
        Body = HttpService:JSONEncode({
            rankerName = ranker.Name, rankerId = ranker.UserId,
            rankeeName = rankee.Name, rankeeId = rankee.UserId,
            newRankId = newRank,
        }),
    })
    if not ok then return false, tostring(response) end
    local answer = HttpService:JSONDecode(response.Body)
    return response.StatusCode == 200, answer.message
end`;
}
