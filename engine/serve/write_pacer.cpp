#include "engine/serve/write_pacer.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace heddle::engine {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

namespace {

constexpr std::size_t kFew = 8;

nanoseconds time_of_this_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

}  // namespace

microseconds write_pause(std::size_t open, nanoseconds write) {
  constexpr int kShare = 64;
  constexpr microseconds kMost(250'000);
  if (open <= kFew) return microseconds(0);
  const nanoseconds all = kShare * std::int64_t(open) * write;
  return std::min(kMost, std::chrono::duration_cast<microseconds>(all));
}

void WritePacer::add(std::shared_ptr<Writer> writer) {
  {
    const std::lock_guard lock(mutex_);
    const microseconds pause = write_pause(writers_, write_);
    if (is_timed_ || pause.count() > 0) {
      waiting_.push_back(std::move(writer));
      if (std::exchange(is_timed_, true)) return;
      timer_.expires_after(pause);
      return timer_.async_wait([this](boost::system::error_code) { let_write(); });
    }
  }
  writer->write_soon();
}

void WritePacer::let_write() {
  std::vector<std::shared_ptr<Writer>> ready;
  {
    const std::lock_guard lock(mutex_);
    ready.swap(waiting_);
    is_timed_ = false;
  }
  const nanoseconds before = time_of_this_thread();
  for (const std::shared_ptr<Writer>& writer : ready) writer->write_now();
  if (ready.size() <= kFew) return;
  const nanoseconds taken = (time_of_this_thread() - before) / std::int64_t(ready.size());
  const std::lock_guard lock(mutex_);
  write_ += (taken - write_) / 4;
}

}  // namespace heddle::engine
