// A lane, as the worker has it: what a call asks of the engine, and tells it. Any thread of the
// plugin may ask while the call is under way.
#pragma once

#include <string>

#include "engine/base/guarded.h"
#include "engine/isolate/channel.h"
#include "engine/isolate/protocol.h"
#include "engine/isolate/worker_memory.h"

namespace heddle::engine {

class WorkerLane {
 public:
  WorkerLane(int socket, std::shared_ptr<SharedMemory> flags, WorkerMemory& memory)
      : channel_(socket), flags_(std::move(flags)), memory_(memory) {}

  // What the engine answers. Throws what it failed with.
  std::string ask(LaneMessage question, const BytesWriter& body);
  void tell(LaneMessage message, const BytesWriter& body);
  Message receive();  // of the kind `call` where the lane is closed: with an empty body
  bool is_cancelled() const {
    return reinterpret_cast<const LaneFlags*>(flags_->data())
               ->is_cancelled.load(std::memory_order_relaxed) != 0;
  }
  WorkerMemory& memory() { return memory_; }

 private:
  Channel channel_;
  const std::shared_ptr<SharedMemory> flags_;
  WorkerMemory& memory_;
  Mutex asking_;
};

// The worker is of no use without the engine.
[[noreturn]] void end_without_engine();

}  // namespace heddle::engine
