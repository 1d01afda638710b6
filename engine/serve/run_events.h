// What a run tells, in the events of /v1. One run each; one thread at a time.
#pragma once

#include <string>

#include "engine/serve/event_log.h"
#include "heddle/run_event.hpp"

namespace heddle::engine {

class RunEvents {
 public:
  RunEvents(std::string job, std::string user, EventLog& events)
      : job_(std::move(job)), user_(std::move(user)), events_(events) {}
  void take(const heddle::Event& event);

 private:
  void publish(std::string_view type, Json data);

  const std::string job_, user_;
  EventLog& events_;
};

}  // namespace heddle::engine
