// How many requests somebody may send: so many a minute, and as many at once after a pause (a token
// bucket for each). Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace heddle::engine {

class RateLimiter {
 public:
  using Clock = std::function<std::int64_t()>;  // ms; never set back; any thread

  // `a_minute` 0: no limit. `clock` empty: the system's steady one.
  explicit RateLimiter(unsigned a_minute, Clock clock = {});

  // 0: it may come. Else the seconds after which the next one may.
  std::int64_t take(const std::string& who);
  // That are known: those who have asked in the last minute, or one more.
  std::size_t size() const;

 private:
  struct Bucket {
    double left = 0;
    std::int64_t at_ms = 0;  // when `left` was right
  };
  void forget_full(std::int64_t now);  // with mutex_

  const unsigned a_minute_;
  const Clock clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;  // mutex_
  std::int64_t swept_ms_ = 0;              // mutex_
};

}  // namespace heddle::engine
