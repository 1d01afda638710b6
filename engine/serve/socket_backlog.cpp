#include "engine/serve/socket_backlog.h"

#include <algorithm>
#include <utility>

namespace heddle::engine {

SocketBacklog::Pushed SocketBacklog::push(WebSocket::Message message, bool is_text, bool may_drop) {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return Pushed::left_out;
  if (may_drop && bytes_ > limits_.socket_drop_bytes) return Pushed::left_out;
  if (bytes_ + message->size() > limits_.socket_backlog_bytes) {
    has_ended_ = true;  // a smaller one behind it would go out without it
    return Pushed::too_much;
  }
  bytes_ += message->size();
  waiting_.push_back({std::move(message), is_text});
  return std::exchange(is_awaited_, true) ? Pushed::behind : Pushed::first;
}

std::optional<SocketBacklog::Waiting> SocketBacklog::take() {
  const std::lock_guard lock(mutex_);
  is_awaited_ = false;
  if (waiting_.empty()) return {};
  std::optional<Waiting> next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

void SocketBacklog::is_sent(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= std::min(bytes_, bytes);
}

void SocketBacklog::end() {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
}

void SocketBacklog::drop() {
  std::deque<Waiting> dropped;  // goes behind the lock
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  dropped.swap(waiting_);
}

}  // namespace heddle::engine
