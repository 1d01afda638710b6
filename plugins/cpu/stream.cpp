#include "stream.h"

#include <new>
#include <system_error>

#include "heddle/device.hpp"
#include "spin.h"

namespace heddle::cpu {

// ---- events ----

std::uint64_t EventState::expect(const std::shared_ptr<StreamLink>& stream) {
  const std::lock_guard lock(mutex_);
  link_ = stream;
  return ++expected_;
}

std::uint64_t EventState::expected() const {
  const std::lock_guard lock(mutex_);
  return expected_;
}

void EventState::reach(std::uint64_t point, std::shared_ptr<const Failure> failure) {
  const Clock::time_point now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (point <= reached_.load(std::memory_order_relaxed))
      return;  // recorded again on a faster stream
    failure_ = std::move(failure);
    time_ = now;
    reached_.store(point, std::memory_order_release);
  }
  changed_.notify_all();
}

std::shared_ptr<const Failure> EventState::wait(std::uint64_t point) {
  const auto there = [&] { return reached_.load(std::memory_order_acquire) >= point; };
  spin_until(there);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, there);
  return failure_;
}

bool EventState::reached() const {
  const std::lock_guard lock(mutex_);
  return reached_.load(std::memory_order_relaxed) >= expected_;
}

std::optional<EventState::Clock::time_point> EventState::time() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t reached = reached_.load(std::memory_order_relaxed);
  if (reached == 0 || reached < expected_) return std::nullopt;
  return time_;
}

void EventState::report(const std::shared_ptr<const Failure>& failure) {
  std::shared_ptr<StreamLink> stream;
  {
    const std::lock_guard lock(mutex_);
    stream = link_;
  }
  if (stream == nullptr) return;
  const std::lock_guard lock(stream->mutex);
  if (stream->failure != failure || stream->reported) return;
  stream->reported = true;
  stream->resume_at = stream->enqueued;
}

// ---- the stream ----

namespace {

constexpr std::size_t kFirstRingSize = 64;

}  // namespace

Stream::Stream(Pool& pool, std::string name)
    : pool_(pool),
      name_(std::move(name)),
      no_memory_(std::make_shared<const Failure>(
          Failure{HEDDLE_OUT_OF_MEMORY, name_ + ": host memory is exhausted"})),
      ring_(kFirstRingSize) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& refused) {
    device::fail(HEDDLE_OUT_OF_MEMORY, "the thread of a stream: ", refused.code().message(),
                 ". The system refuses another thread: look at `ulimit -u`, at pids.max of the "
                 "control group, and for memory at `ulimit -v`");
  }
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true, std::memory_order_release);
  }
  wake_.notify_one();
  thread_.join();
}

void Stream::enqueue(What what, Work work) { push(Kind::kOp, what, std::move(work)); }

void Stream::record(const std::shared_ptr<EventState>& event) {
  const std::uint64_t point = event->expect(link_);
  try {
    push(Kind::kOrder, {"record", nullptr}, Work([event, point](Stream& self) {
           std::shared_ptr<const Failure> failure;
           {
             const std::lock_guard lock(self.link_->mutex);
             failure = self.link_->failure;
           }
           event->reach(point, std::move(failure));
         }));
  } catch (...) {
    event->reach(point, no_memory_);  // whoever waits for it would wait for ever
    throw;
  }
}

void Stream::wait_for(const std::shared_ptr<EventState>& event) {
  push(Kind::kOrder, {"wait_on_stream", nullptr},
       Work([event, point = event->expected()](Stream& self) {
         if (auto failure = event->wait(point)) self.poison(std::move(failure));
       }));
}

void Stream::push(Kind kind, What what, Work work) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(link_->mutex);
    number = link_->enqueued++;
  }
  bool asleep = false;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t size = size_.load(std::memory_order_relaxed);
    if (size == ring_.size()) {
      std::vector<Item> larger(ring_.size() * 2);
      for (std::size_t i = 0; i < size; ++i)
        larger[i] = std::move(ring_[(head_ + i) & (ring_.size() - 1)]);
      ring_ = std::move(larger);
      head_ = 0;
    }
    Item& item = ring_[(head_ + size) & (ring_.size() - 1)];
    item.kind = kind;
    item.what = what;
    item.number = number;
    item.cancel = cancel_;
    item.work = std::move(work);
    size_.store(size + 1, std::memory_order_release);
    asleep = sleeping_;
  }
  if (asleep) wake_.notify_one();
}

Stream::Item Stream::pop() {
  Item item = std::move(ring_[head_]);
  head_ = (head_ + 1) & (ring_.size() - 1);
  size_.store(size_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  return item;
}

void Stream::run() {
  const auto has_news = [this] {
    return size_.load(std::memory_order_acquire) > 0 || stopping_.load(std::memory_order_acquire);
  };
  for (;;) {
    spin_until(has_news);
    std::unique_lock lock(mutex_);
    sleeping_ = true;
    wake_.wait(lock, has_news);
    sleeping_ = false;
    if (size_.load(std::memory_order_relaxed) == 0) return;  // stopping, and all is done
    Item item = pop();
    lock.unlock();
    run_item(item);
  }
}

void Stream::run_item(Item& item) noexcept {
  try {
    try_item(item);
  } catch (...) {
    poison(no_memory_);  // not even for the words
  }
}

void Stream::try_item(Item& item) {
  const bool is_op = item.kind == Kind::kOp;
  if (skips(item.number) && is_op) return;
  running_ = is_op ? std::move(item.cancel) : device::Cancel();
  if (running_.came()) return running_.pass_over();
  heddle_code code = HEDDLE_INTERNAL;
  std::string text;
  try {
    call_scratch_.reset();
    item.work(*this);
    return;
  } catch (const NotWanted&) {
    return running_.pass_over();
  } catch (const device::Error& error) {
    code = error.code();
    text = error.what();
  } catch (const std::bad_alloc&) {
    code = HEDDLE_OUT_OF_MEMORY;
    text = "out of host memory for scratch";
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "something was thrown that is no std::exception";
  }
  std::string message = device::cat(name_, ": ", item.what.op);
  if (item.what.kernel != nullptr) message += device::cat(" (", item.what.kernel, ")");
  poison(std::make_shared<const Failure>(Failure{code, message + ": " + text}));
}

void Stream::poison(std::shared_ptr<const Failure> failure) {
  const std::lock_guard lock(link_->mutex);
  if (link_->failure != nullptr) return;  // the first one counts
  link_->failure = std::move(failure);
  link_->reported = false;
}

bool Stream::skips(std::uint64_t number) {
  const std::lock_guard lock(link_->mutex);
  if (link_->failure == nullptr) return false;
  if (!link_->reported || number < link_->resume_at) return true;
  link_->failure.reset();
  return false;
}

}  // namespace heddle::cpu
