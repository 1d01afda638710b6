// Lines of a server's log for programs: a JSON object each, with the time in UTC. Pure but for the
// clock; any thread.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/log.h"
#include "engine/serve/request_log.h"

namespace heddle::cli {

// {"time": "2026-01-31T23:59:59.123Z", "level": "info", "message": ...}
std::string json_line(engine::Level level, std::string_view message);
// The same with "request": {"id", "method", "path", "status", "bytes", "ms", "peer", "user"}.
std::string json_line(const engine::RequestLine& request);
// "heddle: info: GET /queue 200, 1.2 ms, 127.0.0.1, request ID", for people.
std::string text_line(const engine::RequestLine& request);

}  // namespace heddle::cli
