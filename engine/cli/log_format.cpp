#include "engine/cli/log_format.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "engine/base/json.h"
#include "engine/base/text.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Json;

std::string now_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32], whole[40];
  std::strftime(text, sizeof text, "%FT%T", &parts);
  std::snprintf(whole, sizeof whole, "%s.%03dZ", text, int(ms % 1000));
  return whole;
}

Json line_of(engine::Level level, std::string_view message) {
  Json line = Json::object();
  line.set("time", now_text()).set("level", engine::level_name(level));
  return std::move(line.set("message", message));
}

std::string summary(const engine::RequestLine& request) {
  return cat(request.method, " ", engine::printable(request.path), " ", request.status);
}

}  // namespace

std::string json_line(engine::Level level, std::string_view message) {
  return engine::write_json(line_of(level, message));
}

std::string json_line(const engine::RequestLine& request) {
  Json told = Json::object(), line = line_of(engine::Level::info, summary(request));
  told.set("id", request.id).set("method", request.method).set("path", request.path);
  told.set("status", std::uint64_t{request.status}).set("bytes", request.bytes);
  told.set("ms", std::round(request.milliseconds * 1000) / 1000).set("peer", request.peer);
  told.set("user", request.user.empty() ? Json() : Json(request.user));
  return engine::write_json(line.set("request", std::move(told)));
}

std::string text_line(const engine::RequestLine& request) {
  char time[32];
  std::snprintf(time, sizeof time, "%.1f ms", request.milliseconds);
  return cat("heddle: info: ", summary(request), ", ", time, ", ", engine::printable(request.peer),
             request.user.empty() ? "" : cat(", user ", request.user), ", request ", request.id);
}

}  // namespace heddle::cli
