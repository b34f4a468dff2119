/** A server script for a game that changes a rank through rankd; `url` is where the game reaches it. docs/in-game.md shows the same. */
export function luauSnippet(url: string): string {
  return `-- A Script in ServerScriptService. Allow HTTP requests in the game's settings, and keep the key in a secret named "rankd".
local HttpService = game:GetService("HttpService")
local Players = game:GetService("Players")
local key = HttpService:GetSecret("rankd"):AddPrefix("Bearer ")

local function setRank(ranker: Player, rankee: Player, newRank: number): (boolean, string)
    -- What comes back is not always rankd's: a proxy in front of it may answer with a page of its own, or nobody at all.
    local isAnswered, isDone, message = pcall(function()
        local response = HttpService:RequestAsync({
            Url = "${url}/v1/ranker?placeid=" .. game.PlaceId,
            Method = "POST",
            Headers = { Authorization = key, ["Content-Type"] = "application/json" },
            Body = HttpService:JSONEncode({
                rankerName = ranker.Name, rankerId = ranker.UserId,
                rankeeName = rankee.Name, rankeeId = rankee.UserId,
                newRankId = newRank,
            }),
        })
        return response.StatusCode == 200, HttpService:JSONDecode(response.Body).message
    end)
    if not isAnswered then return false, "Whether the rank was changed is not known: " .. tostring(isDone) end
    return isDone, message
end

-- An example: a player with one of these user ids types "/rank Newcomer 20" in the chat, for a player in the same server.
local rankers = { [1003] = true }
local command = Instance.new("TextChatCommand")
command.PrimaryAlias = "/rank"
command.Parent = game:GetService("TextChatService")
command.Triggered:Connect(function(source, text)
    local name, rank = string.match(text, "(%S+) (%d+)$")
    local ranker = rankers[source.UserId] and Players:GetPlayerByUserId(source.UserId)
    local rankee = name and Players:FindFirstChild(name)
    if ranker and rankee then
        print(setRank(ranker, rankee, tonumber(rank)))
    else
        warn("/rank needs a user id that is in rankers, the name of a player in this server, and a rank")
    end
end)`;
}
