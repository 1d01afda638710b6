#include "shuffler.h"

#include <thread>

#include "stream.h"

namespace heddle::fake {

Shuffler& Shuffler::instance() {
  static Shuffler shuffler;
  return shuffler;
}

void Shuffler::seed(std::uint64_t seed) {
  const std::lock_guard lock(mutex_);
  if (streams_.empty()) random_.seed(seed);
}

void Shuffler::add(Stream& stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(&stream);
}

void Shuffler::finish(Stream& stream) {
  run_until([&] { return stream.is_empty(); });
  const std::lock_guard lock(mutex_);
  std::erase(streams_, &stream);
}

void Shuffler::run_until(const std::function<bool()>& done) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (done()) return;
      if (step()) continue;
    }
    std::this_thread::yield();  // it waits for a device that does not shuffle
  }
}

void Shuffler::run_one() {
  const std::lock_guard lock(mutex_);
  step();
}

bool Shuffler::step() {
  runnable_.clear();
  for (Stream* stream : streams_)
    if (stream->can_run()) runnable_.push_back(stream);
  if (runnable_.empty()) return false;
  runnable_[random_() % runnable_.size()]->run_one();
  return true;
}

}  // namespace heddle::fake
