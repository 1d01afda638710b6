#include "engine/serve/log_lines.h"

#include <time.h>

#include <cstdio>

namespace heddle::engine {
namespace {

constexpr std::size_t kMostLines = 1000;

std::string time_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  ::gmtime_r(&now.tv_sec, &parts);
  char text[64];
  const std::size_t size = ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof text - size, ".%06ld", now.tv_nsec / 1000);
  return text;
}

}  // namespace

void LogLines::add(std::string_view text) {
  LogLine line{time_now(), std::string(text) + "\n"};
  {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
    if (lines_.size() > kMostLines) lines_.pop_front();
  }
  const std::lock_guard lock(telling_);
  if (listener_) listener_(line);
}

std::vector<LogLine> LogLines::lines() const {
  const std::lock_guard lock(mutex_);
  return {lines_.begin(), lines_.end()};
}

void LogLines::listen(std::function<void(const LogLine&)> listener) {
  const std::lock_guard lock(telling_);
  listener_ = std::move(listener);
}

}  // namespace heddle::engine
