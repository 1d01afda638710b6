#include "engine/base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "engine/base/guarded.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

std::atomic<Level> current_level{Level::info};

// Made at first use and never destroyed, so that destructors of static objects may still log.
Guarded<std::shared_ptr<const LogSink>>& current_sink() {
  static auto* sink = new Guarded<std::shared_ptr<const LogSink>>();
  return *sink;
}

// One write() for the line: lines of several threads do not mix.
void write_to_stderr(Level level, std::string_view message) {
  const std::string line = cat("heddle: ", level_name(level), ": ", printable(message), "\n");
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string_view level_name(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warning:
      return "warning";
    case Level::error:
      return "error";
  }
  return "unknown level";
}

void set_log_sink(LogSink sink) {
  auto next = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  // The old sink is destroyed by `next`, after the lock is gone.
  std::swap(*current_sink().lock(), next);
}

void set_log_level(Level level) { current_level.store(level, std::memory_order_relaxed); }

Level log_level() { return current_level.load(std::memory_order_relaxed); }

void log(Level level, std::string_view message) {
  if (level < log_level()) return;
  const std::shared_ptr<const LogSink> sink = *current_sink().lock();
  if (sink) {
    (*sink)(level, message);
  } else {
    write_to_stderr(level, message);
  }
}

}  // namespace heddle::engine
