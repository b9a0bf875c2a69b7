-- For wrk: what a page and a notebook ask for, in turn; argument "apart": each request unlike all others (a header says
-- its number), so that none can have another's answer. Prints one line of JSON at the end.

local paths = {
  "/health", "/fabric", "/modes", "/agents", "/links", "/scheme",
  "/schemes", "/queues", "/flows", "/experiments", "/events?limit=100", "/metrics",
}
local threads = 0

function setup(thread)
  threads = threads + 1
  thread:set("turn", threads * 5)
  thread:set("number", threads * 1000000000)
end

function init(args)
  apart = args[1] == "apart"
end

function request()
  turn = turn + 1
  number = number + 1
  local headers = {}
  if apart then headers["X-Number"] = tostring(number) end
  return wrk.format("GET", "/api/v1" .. paths[turn % #paths + 1], headers)
end

function done(summary, latency, requests)
  local counts = {}
  for i = 1, #latency do
    local us, count = latency(i)
    counts[i] = string.format("[%d, %d]", us, count)
  end
  local errors = summary.errors
  io.write(string.format(
    '\n{"seconds": %.6f, "requests": %d, "refused": %d, "broken": %d, "us": [%s]}\n',
    summary.duration / 1e6, summary.requests, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, table.concat(counts, ", ")
  ))
end
