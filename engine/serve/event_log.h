// What happens in a server, numbered, for whoever wants to follow it: as server-sent events (HTML's
// EventSource). The last ones are kept, so that a reader who was away misses nothing. Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/serve/caller.h"
#include "engine/serve/http_message.h"

namespace heddle::engine {

class EventLog {
 public:
  // `first`: the number of the first event. Higher than those of earlier servers, so that a reader
  // who comes back after a restart is told that something is lost. `most_bytes`: of all that are
  // kept, and are sent at once to who asks for them; well below what may wait for a reader.
  explicit EventLog(std::uint64_t first, std::size_t most_events = 20'000,
                    std::size_t most_bytes = 2 << 20)
      : most_events_(most_events), most_bytes_(most_bytes), next_(first) {}

  struct Subject {
    std::string job;   // its id; "": of none
    std::string user;  // whose job it is
  };
  // `is_last`: of this job nothing follows, which ends its streams.
  void publish(std::string_view type, const Subject& subject, const Json& data,
               bool is_last = false);

  // Sends what came after the event `after`, and all that comes; nothing: what comes alone. 0: from
  // the first that is kept. `job`: of this one alone; "": all. Events of jobs that the caller may
  // not see are left out. What is not kept any more is told by an event "lost" without a number.
  void follow(const std::shared_ptr<HttpStream>& stream, std::optional<std::uint64_t> after,
              const std::string& job, const Caller& caller = operator_caller());
  // Of a stream of a job that has ended: what it is in the end is sent, unless that was already,
  // and nothing more.
  void close(const std::shared_ptr<HttpStream>& stream, const std::string& job, const Json& state);

  // The streams of those who are gone.
  void close_all(const std::function<bool(const Caller&)>& is_gone);
  // Before the server goes.
  void forget_all();
  std::size_t readers() const;  // that are still there

 private:
  struct Kept {
    std::uint64_t number = 0;
    Subject subject;
    std::string text;
    bool is_last = false;
  };
  struct Reader {
    std::shared_ptr<HttpStream> stream;
    std::string job;
    Caller caller;
    bool wants(const Subject& subject) const;
  };

  const std::size_t most_events_, most_bytes_;
  mutable std::mutex mutex_;
  std::uint64_t next_;           // mutex_
  std::deque<Kept> kept_;        // mutex_
  std::size_t kept_bytes_ = 0;   // mutex_
  std::vector<Reader> readers_;  // mutex_
};

}  // namespace heddle::engine
