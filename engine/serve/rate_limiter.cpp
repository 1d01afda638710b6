#include "engine/serve/rate_limiter.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace heddle::engine {
namespace {

constexpr double kMinuteMs = 60'000;

std::int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

RateLimiter::RateLimiter(unsigned a_minute, Clock clock)
    : a_minute_(a_minute), clock_(clock ? std::move(clock) : Clock(steady_ms)) {}

std::int64_t RateLimiter::take(const std::string& who) {
  if (a_minute_ == 0) return 0;
  const std::int64_t now = clock_();
  const std::lock_guard lock(mutex_);
  forget_full(now);
  const auto [at, is_new] = buckets_.try_emplace(who, Bucket{double(a_minute_), now});
  Bucket& bucket = at->second;
  const double came = double(now - bucket.at_ms) * a_minute_ / kMinuteMs;
  bucket.left = std::min(double(a_minute_), bucket.left + came);
  bucket.at_ms = now;
  if (bucket.left >= 1) {
    bucket.left -= 1;
    return 0;
  }
  const double wait_ms = (1 - bucket.left) * kMinuteMs / a_minute_;
  return std::max<std::int64_t>(1, std::int64_t(std::ceil(wait_ms / 1000)));
}

// After a minute without a request a bucket is as a new one.
void RateLimiter::forget_full(std::int64_t now) {
  if (double(now - swept_ms_) < kMinuteMs) return;
  swept_ms_ = now;
  std::erase_if(buckets_,
                [&](const auto& one) { return double(now - one.second.at_ms) >= kMinuteMs; });
}

std::size_t RateLimiter::size() const {
  const std::lock_guard lock(mutex_);
  return buckets_.size();
}

}  // namespace heddle::engine
