// GET /v1/events as a WebSocket: each event a text, {"id": its number, "event": "job", "data":
// {...}}; "id" is null where server-sent events have none. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "engine/queue/job_queue.h"
#include "engine/serve/event_log.h"
#include "engine/serve/http_server.h"

namespace heddle::engine {

// Follows from the number on that the query's `after` gives, as the other form does; `job`, also of
// the query: of this one alone, until it has ended. What the client sends is ignored. Nothing: it
// is closed again, as `most_readers` follow already, `after` is no number, or the caller sees no
// such job.
std::optional<WebSocketEvents> follow_events(const HttpRequest& head,
                                             const std::shared_ptr<WebSocket>& socket,
                                             EventLog& events, const JobQueue& queue,
                                             std::size_t most_readers);

}  // namespace heddle::engine
