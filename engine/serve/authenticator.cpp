#include "engine/serve/authenticator.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "engine/base/error.h"

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

// How long it takes says nothing of where the difference is.
bool is_equal_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= unsigned(a[i]) ^ unsigned(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
}

std::string random_hex(std::size_t characters) {
  std::string bytes(characters / 2, '\0'), text;
  for (std::size_t filled = 0; filled < bytes.size();) {
    const ssize_t got = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got > 0) filled += std::size_t(got);
    if (got < 0 && errno != EINTR) throw system_error("getrandom", errno);
  }
  for (const char byte : bytes)
    for (const int shift : {4, 0}) text += "0123456789abcdef"[(byte >> shift) & 15];
  return text;
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

Authenticator::Authenticator(std::string api_key, Clock clock)
    : api_key_(std::move(api_key)), clock_(clock ? std::move(clock) : Clock(steady_ms)) {}

Authenticator::Checked Authenticator::check_key(std::string_view key, const std::string& peer) {
  const std::int64_t now = clock_();
  const std::lock_guard lock(mutex_);
  if (const auto found = failures_.find(peer); found != failures_.end()) {
    if (now < found->second.wait_until_ms)
      return {Verdict::wait, (found->second.wait_until_ms - now + 999) / 1000};
    if (now - found->second.last_ms > kForgottenMs) failures_.erase(found);
  }
  if (!is_equal_secret(key, api_key_)) {
    add_failure(peer, now);
    return {};
  }
  failures_.erase(peer);
  return {Verdict::right};
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

std::string Authenticator::open_session() {
  const std::string token = random_hex(2 * kHalf);
  const std::lock_guard lock(mutex_);
  if (sessions_.size() >= kMostSessions)
    drop_oldest(sessions_, [](const Session& session) { return session.opened_ms; });
  sessions_[token.substr(0, kHalf)] = {token.substr(kHalf), clock_()};
  return token;
}

bool Authenticator::has_session(std::string_view token) const {
  if (token.size() != 2 * kHalf) return false;
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(token.substr(0, kHalf));
  return found != sessions_.end() && clock_() - found->second.opened_ms < kSessionMs &&
         is_equal_secret(token.substr(kHalf), found->second.secret);
}

void Authenticator::end_session(std::string_view token) {
  if (!has_session(token)) return;
  const std::lock_guard lock(mutex_);
  sessions_.erase(std::string(token.substr(0, kHalf)));
}

}  // namespace heddle::engine
