#include "engine/serve/authenticator.h"

#include <algorithm>
#include <chrono>

#include "engine/serve/secret.h"

namespace heddle::engine {
namespace {

constexpr std::size_t kMostSessions = 1000, kMostPeers = 1000;
constexpr std::size_t kHalf = 32;  // characters of a token: 128 bits to find it by, 128 to compare
constexpr int kFreeFailures = 5;   // people mistype
constexpr std::int64_t kFirstWaitMs = 1000, kLongestWaitMs = 60'000;
constexpr std::int64_t kForgottenMs = 15 * 60'000;  // after so long without a wrong key

std::int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Of the one that is oldest by `time`.
template <class Map, class Time>
void drop_oldest(Map& map, Time time) {
  const auto earlier = [&](const auto& a, const auto& b) {
    return time(a.second) < time(b.second);
  };
  map.erase(std::ranges::min_element(map, earlier));
}

}  // namespace

Authenticator::Authenticator(std::string api_key, Clock clock, std::unique_ptr<KeyRing> keys)
    : api_key_(std::move(api_key)),
      clock_(clock ? std::move(clock) : Clock(steady_ms)),
      keys_(std::move(keys)) {}

std::optional<Caller> Authenticator::holder_of(std::string_view key) {
  if (!api_key_.empty() && is_equal_secret(key, api_key_)) return operator_caller();
  return keys_ == nullptr ? std::nullopt : keys_->find(key);
}

Authenticator::Checked Authenticator::check_key(std::string_view key, const std::string& peer) {
  const std::int64_t now = clock_();
  const std::lock_guard lock(mutex_);
  if (const auto found = failures_.find(peer); found != failures_.end()) {
    if (now < found->second.wait_until_ms)
      return {Verdict::wait, (found->second.wait_until_ms - now + 999) / 1000};
    if (now - found->second.last_ms > kForgottenMs) failures_.erase(found);
  }
  const std::optional<Caller> caller = holder_of(key);
  if (!caller) {
    add_failure(peer, now);
    return {};
  }
  failures_.erase(peer);
  return {Verdict::right, 0, *caller};
}

void Authenticator::add_failure(const std::string& peer, std::int64_t now) {
  if (failures_.size() >= kMostPeers && !failures_.contains(peer))
    drop_oldest(failures_, [](const Failures& failures) { return failures.last_ms; });
  Failures& failures = failures_[peer];
  failures.last_ms = now;
  if (++failures.count < kFreeFailures) return;
  const int doublings = std::min(failures.count - kFreeFailures, 10);
  failures.wait_until_ms = now + std::min(kFirstWaitMs << doublings, kLongestWaitMs);
}

std::string Authenticator::open_session(const Caller& caller) {
  const std::string token = random_hex(2 * kHalf);
  const std::lock_guard lock(mutex_);
  if (sessions_.size() >= kMostSessions)
    drop_oldest(sessions_, [](const Session& session) { return session.opened_ms; });
  sessions_[token.substr(0, kHalf)] = {token.substr(kHalf), clock_(), caller.key};
  return token;
}

std::optional<Caller> Authenticator::session(std::string_view token) const {
  if (token.size() != 2 * kHalf) return {};
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(token.substr(0, kHalf));
  const bool is_one = found != sessions_.end() && clock_() - found->second.opened_ms < kSessionMs &&
                      is_equal_secret(token.substr(kHalf), found->second.secret);
  if (!is_one) return {};
  if (found->second.key.empty()) return operator_caller();
  return keys_ == nullptr ? std::nullopt : keys_->holder(found->second.key);
}

bool Authenticator::is_current(const Caller& caller) const {
  if (caller.key.empty()) return true;
  return keys_ != nullptr && keys_->holder(caller.key) == caller;
}

void Authenticator::end_session(std::string_view token) {
  if (!session(token)) return;
  const std::lock_guard lock(mutex_);
  sessions_.erase(std::string(token.substr(0, kHalf)));
}

}  // namespace heddle::engine
