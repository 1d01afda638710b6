#include "engine/serve/write_pacer.h"

#include <algorithm>
#include <utility>

namespace heddle::engine {

using std::chrono::microseconds;

microseconds write_pause(std::size_t open) {
  constexpr std::size_t kFew = 8;
  constexpr microseconds kEach(250), kMost(250'000);
  if (open <= kFew) return microseconds(0);
  return std::min(kMost, kEach * std::int64_t(open));
}

void WritePacer::add(std::shared_ptr<Writer> writer) {
  {
    const std::lock_guard lock(mutex_);
    const microseconds pause = write_pause(writers_);
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
  for (const std::shared_ptr<Writer>& writer : ready) writer->write_now();
}

}  // namespace heddle::engine
