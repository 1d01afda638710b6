// Nodes that go on after their call (heddle_completion_service).
#include <algorithm>

#include "engine/base/caught.h"
#include "engine/device/status.h"
#include "engine/run/execution.h"

namespace heddle::engine {

namespace {

Code code_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (...) {
    return caught_error().code();
  }
}

}  // namespace

void Execution::on_complete(std::list<Completion>& one) {
  const Lock lock(mutex_);
  completions_.splice(completions_.end(), one);
  any_news_ = true;
  changed_.notify_all();
}

// Finishes deferred nodes that are complete. False: there was none.
bool Execution::finish_deferred(Worker& worker, Lock& lock) {
  if (!any_news_) return false;
  const bool had_lock = lock.owns_lock();
  if (!had_lock) lock.lock();
  Running running;
  for (auto c = completions_.begin(); c != completions_.end() && running.call == nullptr;) {
    // A node may complete before the thread that executed it has put it among the deferred ones.
    const auto at =
        std::ranges::find_if(deferred_, [&](const Running& r) { return r.has(c->call); });
    if (at == deferred_.end()) {
      ++c;
      continue;
    }
    if (at->complete(c->status)) {
      running = std::move(*at);
      deferred_.erase(at);
    }
    c = completions_.erase(c);
  }
  any_news_ = !completions_.empty() || !heard_.empty();
  if (running.call == nullptr) {
    if (!had_lock) lock.unlock();
    return false;
  }
  ++running_;
  lock.unlock();
  guard_node(running.node, running.has_flight, lock, [&] {
    if (running.failure != nullptr) {
      if (comes_again(running, code_of(running.failure), lock)) return;
      std::rethrow_exception(running.failure);
    }
    if (running.is_suspended) return suspend(running, lock);
    finish_or_hold(running, worker, lock);
  });
  --running_;
  drop(worker, lock);
  return true;
}

// Their calls must outlive them, so a failed run waits, and what they say no longer matters.
void Execution::abandon_deferred() {
  flights_.clear();
  held_.clear();
  Lock lock(mutex_);
  while (!deferred_.empty()) {
    changed_.wait(lock, [this] { return !completions_.empty(); });
    for (const Completion& completion : completions_) {
      const auto of_this = [&](const Running& r) { return r.has(completion.call); };
      const auto at = std::ranges::find_if(deferred_, of_this);
      if (at == deferred_.end())
        free_status(completion.status);
      else if (at->complete(completion.status))
        deferred_.erase(at);
    }
    completions_.clear();
  }
}

}  // namespace heddle::engine
