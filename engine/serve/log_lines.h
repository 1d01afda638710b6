// The last lines of the log, for people who look at them in a front end. Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::engine {

struct LogLine {
  std::string time;  // "2026-01-31T23:59:59.123456", UTC
  std::string text;  // with its line end
};

class LogLines {
 public:
  void add(std::string_view text);
  std::vector<LogLine> lines() const;
  // Called for every line from now on, by the thread that logs; one at a time, empty: nobody. When
  // this is back the old one is not being called any more.
  void listen(std::function<void(const LogLine&)> listener);

 private:
  mutable std::mutex mutex_;
  std::deque<LogLine> lines_;  // mutex_
  std::mutex telling_;
  std::function<void(const LogLine&)> listener_;  // telling_
};

}  // namespace heddle::engine
