// Who knows an API key of the server, and browsers that have shown one once: they get a session,
// which stands for the key and is random. Wrong keys are slowed down, by the address that they come
// from. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "engine/serve/caller.h"
#include "engine/serve/key_file.h"

namespace heddle::engine {

class Authenticator {
 public:
  using Clock = std::function<std::int64_t()>;  // ms; never set back; any thread

  // `api_key`: of the server's operator, who may do everything; empty: there is none. `keys`: those
  // of users, or nullptr. `clock` empty: the system's steady one.
  explicit Authenticator(std::string api_key, Clock clock = {},
                         std::unique_ptr<KeyRing> keys = nullptr);
  Authenticator(const Authenticator&) = delete;

  // `wait`: after many wrong ones no key of this peer is looked at for so many seconds.
  enum class Verdict { right, wrong, wait };
  struct Checked {
    Verdict verdict = Verdict::wrong;
    std::int64_t wait_seconds = 0;
    Caller caller = {};  // whose key it is, where it is right
  };
  Checked check_key(std::string_view key, const std::string& peer);

  // Sessions end with the process, with their key, after kSessionMs, and the oldest one when there
  // are too many.
  static constexpr std::int64_t kSessionMs = std::int64_t{30} * 24 * 60 * 60 * 1000;
  std::string open_session(const Caller& caller);  // its token
  // Whose it is, by what their key says now; nothing: there is none.
  std::optional<Caller> session(std::string_view token) const;
  void end_session(std::string_view token);
  // Whether their key still says what it said when they came.
  bool is_current(const Caller& caller) const;

 private:
  struct Session {
    std::string secret;
    std::int64_t opened_ms = 0;
    std::string key;  // id; "": the operator's
  };
  struct Failures {
    int count = 0;
    std::int64_t last_ms = 0, wait_until_ms = 0;
  };
  std::optional<Caller> holder_of(std::string_view key);
  void add_failure(const std::string& peer, std::int64_t now);

  const std::string api_key_;
  const Clock clock_;
  const std::unique_ptr<KeyRing> keys_;  // nullptr: none of users
  mutable std::mutex mutex_;
  std::map<std::string, Session, std::less<>> sessions_;  // mutex_; by the first half of the token
  std::map<std::string, Failures> failures_;              // mutex_; by peer
};

}  // namespace heddle::engine
