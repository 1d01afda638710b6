// Which node the calling thread is in, for whoever reports that the process ends there: read by a
// handler of a signal, so plain pointers in memory that is there from the thread's start.
#pragma once

namespace heddle::engine {

struct RunningNode {
  const char* id = nullptr;  // nullptr: in none
  const char* type = nullptr;
  const char* plugin = nullptr;  // its id
};

// Async-signal-safe.
inline RunningNode& running_node() noexcept {
  static constinit thread_local RunningNode running;
  return running;
}

// Stands while a thread calls a function of a node. Calls may be within others.
class InNode {
 public:
  // What is told of the node outlives it.
  explicit InNode(const RunningNode& node) noexcept : before_(running_node()) {
    running_node() = node;
  }
  ~InNode() { running_node() = before_; }
  InNode(const InNode&) = delete;

 private:
  const RunningNode before_;
};

}  // namespace heddle::engine
