// The engine's log: four levels and one sink for the whole process. What is logged is for people;
// what a program has to know comes as a value or as an Error. Everything here is thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace heddle::engine {

// The numbers are those of heddle_level in the C ABI.
enum class Level : std::int32_t { debug = 0, info = 1, warning = 2, error = 3 };

std::string_view level_name(Level level);  // "debug", "info", "warning", "error"

// Receives one message without a line end. Called on the thread that logs, by several threads at
// once, without any lock of the engine held; it may log itself and must not throw.
using LogSink = std::function<void(Level, std::string_view message)>;

// Replaces the sink; an empty one brings back the default, which writes "heddle: warning: message"
// to stderr, whole lines. A message that another thread is just logging may still reach the old
// sink after this returns.
void set_log_sink(LogSink sink);

// Messages below `level` are dropped. The default is info.
void set_log_level(Level level);
Level log_level();

void log(Level level, std::string_view message);

}  // namespace heddle::engine
