#include "stream.h"

#include <new>

#include "control.h"
#include "cpu.h"
#include "device.h"
#include "heddle/device.hpp"
#include "shuffler.h"

namespace heddle::fake {

// ---- events ----

std::uint64_t EventState::expect(std::shared_ptr<StreamFailure> stream, Clock::Point time) {
  const std::lock_guard lock(mutex_);
  stream_ = std::move(stream);
  graph_.reset();
  last_.time = std::move(time);
  return ++last_.number;
}

void EventState::record_in(std::weak_ptr<CapturedGraph> graph, std::size_t mark) {
  const std::lock_guard lock(mutex_);
  graph_ = std::move(graph);
  mark_ = mark;
}

std::pair<std::shared_ptr<CapturedGraph>, std::size_t> EventState::recorded() const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<CapturedGraph> graph = graph_.lock();
  if (graph != nullptr && !graph->is_recording()) graph = nullptr;
  return {std::move(graph), mark_};
}

EventState::Record EventState::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void EventState::reach(std::uint64_t number, FailureRef failure) {
  {
    const std::lock_guard lock(mutex_);
    if (number <= reached_) return;  // recorded again on a faster stream
    reached_ = number;
    failure_ = std::move(failure);
  }
  changed_.notify_all();
}

FailureRef EventState::wait(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return reached_ >= number; });
  return failure_;
}

bool EventState::reached(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return reached_ >= number;
}

void EventState::report(const FailureRef& failure) {
  std::shared_ptr<StreamFailure> stream;
  {
    const std::lock_guard lock(mutex_);
    stream = stream_;
  }
  if (stream == nullptr) return;
  const std::lock_guard lock(stream->mutex);
  if (stream->first != failure || stream->reported) return;
  stream->reported = true;
  stream->resume_at = stream->enqueued;
}

// ---- the stream ----

Stream::Stream(Device& device, std::uint32_t ordinal)
    : device_(device), track_{.device = device.index(), .ordinal = ordinal} {
  if (device_.shuffles()) Shuffler::instance().add(*this);
}

Stream::~Stream() {
  if (device_.shuffles()) {
    Shuffler::instance().finish(*this);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Stream::enqueue(std::string what, Work work) {
  push({.what = std::move(what), .work = std::move(work)});
}

std::shared_ptr<CapturedGraph> Stream::take_captured_graph() {
  std::shared_ptr<CapturedGraph> graph = std::move(captured_graph_);
  graph->finish();
  return graph;
}

void Stream::record(const EventRef& event) {
  if (captured_graph_ != nullptr && keeps_other_streams())
    return event->record_in(captured_graph_, captured_graph_->mark(lane_));
  Clock& clock = device_.clock();
  const std::uint64_t number = event->expect(failure_, clock.work(track_, 0));
  push({.is_order = true, .what = "record", .order = [this, event, number](bool is_stale) {
          if (is_stale) return event->reach(number, device_.death());
          FailureRef failure;
          {
            const std::lock_guard lock(failure_->mutex);
            failure = failure_->first;
          }
          event->reach(number, std::move(failure));
        }});
}

void Stream::wait_for(const EventRef& event) {
  if (const auto [graph, mark] = event->recorded(); graph != nullptr) {
    if (captured_graph_ == nullptr) lane_ = graph->join(*this);
    captured_graph_ = graph;
    return graph->wait(lane_, mark);
  }
  const EventState::Record point = event->last();
  if (point.number == 0) return;  // never recorded: nothing to wait for
  device_.clock().work(track_, 0, point.time);
  push({.is_order = true,
        .what = "wait_on_stream",
        .order =
            [this, event, number = point.number](bool is_stale) {
              FailureRef failure = event->wait(number);
              if (failure != nullptr && !is_stale) poison(std::move(failure));
            },
        .ready = [event, number = point.number] { return event->reached(number); }});
}

void Stream::push(Item item) {
  if (captured_graph_ != nullptr)
    device::fail(HEDDLE_UNSUPPORTED, item.what, " cannot be recorded: only kernels can");
  {
    const std::lock_guard lock(failure_->mutex);
    item.number = failure_->enqueued++;
  }
  item.life = device_.life();
  if (!item.is_order) item.cancel = cancel_;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(item));
    if (!device_.shuffles() && !thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  wake_.notify_one();
}

void Stream::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Item item = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    run_item(item);
  }
}

bool Stream::is_empty() {
  const std::lock_guard lock(mutex_);
  return queue_.empty();
}

bool Stream::can_run() {
  std::function<bool()> ready;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return false;
    ready = queue_.front().ready;
  }
  return !ready || ready();
}

void Stream::run_one() {
  Item item;
  {
    const std::lock_guard lock(mutex_);
    item = std::move(queue_.front());
    queue_.pop_front();
  }
  run_item(item);
}

void Stream::run_item(Item& item) noexcept {
  try {
    try_item(item);
  } catch (...) {
    poison(no_memory_);  // not even for the words
  }
}

void Stream::try_item(Item& item) {
  const bool is_stale = device_.life() != item.life || Device::is_dead(item.life);
  const bool is_skipped =
      !is_stale && skips(item);  // asked for orders, too: a failure that is reported ends here
  if (item.is_order) return item.order(is_stale);
  if (is_stale || is_skipped) return;
  if (item.cancel.came()) return item.cancel.pass_over();
  heddle_code code = HEDDLE_INTERNAL;
  std::string text;
  try {
    if (cpu_ == nullptr) cpu_ = std::make_unique<CpuStream>(device_.cpu());
    const auto lock = device_.working();
    if (device_.life() == item.life) item.work(*cpu_);
    return;
  } catch (const device::Error& error) {
    code = error.code();
    text = error.what();
  } catch (const std::bad_alloc&) {
    code = HEDDLE_OUT_OF_MEMORY;
    text = "out of host memory";
  } catch (const std::exception& error) {
    text = error.what();
  }
  poison(std::make_shared<const Failure>(
      Failure{code, device::cat(device_.name(), ": ", item.what, ": ", text)}));
}

void Stream::poison(FailureRef failure) {
  const std::lock_guard lock(failure_->mutex);
  if (failure_->first != nullptr) return;  // the first one counts
  failure_->first = std::move(failure);
  failure_->reported = false;
}

bool Stream::skips(const Item& item) {
  const std::lock_guard lock(failure_->mutex);
  if (failure_->first == nullptr) return false;
  if (!failure_->reported || item.number < failure_->resume_at) return true;
  failure_->first = nullptr;
  return false;
}

}  // namespace heddle::fake
