// Who knows the server's API key, and browsers that have shown it once: they get a session, which
// stands for the key and is random. Wrong keys are slowed down, by the address that they come from.
// Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace heddle::engine {

class Authenticator {
 public:
  using Clock = std::function<std::int64_t()>;  // ms; never set back; any thread

  explicit Authenticator(std::string api_key, Clock clock = {});  // empty: the system's steady one
  Authenticator(const Authenticator&) = delete;

  // `wait`: after many wrong ones no key of this peer is looked at for so many seconds.
  enum class Verdict { right, wrong, wait };
  struct Checked {
    Verdict verdict = Verdict::wrong;
    std::int64_t wait_seconds = 0;
  };
  Checked check_key(std::string_view key, const std::string& peer);

  // Sessions end with the process, after kSessionMs, and the oldest one when there are too many.
  static constexpr std::int64_t kSessionMs = std::int64_t{30} * 24 * 60 * 60 * 1000;
  std::string open_session();  // its token
  bool has_session(std::string_view token) const;
  void end_session(std::string_view token);

 private:
  struct Session {
    std::string secret;
    std::int64_t opened_ms = 0;
  };
  struct Failures {
    int count = 0;
    std::int64_t last_ms = 0, wait_until_ms = 0;
  };
  void add_failure(const std::string& peer, std::int64_t now);

  const std::string api_key_;
  const Clock clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Session, std::less<>> sessions_;  // mutex_; by the first half of the token
  std::map<std::string, Failures> failures_;              // mutex_; by peer
};

}  // namespace heddle::engine
