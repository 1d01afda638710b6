#include "engine/serve/frame_stream.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace heddle::engine {
namespace {

// Of one write: as many buffers as the system takes, and no more bytes than a control frame may
// wait for.
constexpr std::size_t kFramesAtOnce = 32, kBytesAtOnce = 256 << 10;

constexpr char kCloseFrame = char(0x88);

// Over a slow line the system would take megabytes ahead, and a ping would wait behind them all.
// Nothing of the kind is said of Unix sockets, whose other side is here.
void keep_little_ahead(ServerStream::Socket& socket) {
  const int most = int(kBytesAtOnce);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
}

void call_soon(const FrameStream::executor_type& executor, std::optional<Completion> done,
               beast::error_code failure, std::size_t bytes) {
  if (!done) return;
  asio::post(executor,
             [done = std::move(*done), failure, bytes]() mutable { done(failure, bytes); });
}

}  // namespace

FrameStream::FrameStream(ServerStream stream, const ServerLimits& limits)
    : stream_(std::move(stream)), backlog_(limits), watch_(limits) {
  beast::error_code ignored;  // then write_at_once() only fails
  stream_.socket().non_blocking(true, ignored);
  keep_little_ahead(stream_.socket());
}

void FrameStream::let_go() {
  // Out of the members first: handlers of Beast's go while nothing here refers to them.
  const std::deque<Frame> own = std::exchange(own_, {}), writing = std::exchange(writing_, {});
}

void FrameStream::push_own(std::string bytes, Completion done) {
  if (has_failed_) return call_soon(get_executor(), std::move(done), asio::error::broken_pipe, 0);
  if (!bytes.empty() && bytes.front() == kCloseFrame) {  // the last of all frames
    backlog_.drop();
    begun_.reset();
    if (const auto writer = writer_.lock()) writer->farewell_begins();
  }
  own_.push_back({nullptr, std::move(bytes), {}, std::move(done)});
  // Not here: Beast is not done with the call.
  asio::post(get_executor(), [this, alive = writer_.lock()] {
    if (alive) write();
  });
}

void FrameStream::write() {
  try {
    write_all();
  } catch (const std::exception&) {  // no memory, and a part of a message may be lost
    is_writing_ = false;             // what throws has begun no write
    fail(asio::error::no_memory);
  }
}

void FrameStream::write_all() {
  while (!is_writing_ && !has_failed_) {
    if (writing_.empty()) take_next();
    if (writing_.empty()) {
      is_behind_ = false;
      if (const auto writer = writer_.lock()) writer->all_is_written();
      return;
    }
    if (!write_at_once()) write_later();
  }
}

// To be written next, what is Beast's first.
void FrameStream::take_next() {
  for (; !own_.empty(); own_.pop_front()) writing_.push_back(std::move(own_.front()));
  std::size_t bytes = 0;
  while (bytes < kBytesAtOnce && writing_.size() < kFramesAtOnce && (begun_ || begin_message())) {
    MessageFrames::Frame next = begun_->next();
    bytes += next.content.size();
    writing_.push_back({begun_->message(), std::move(next.header), next.content, {}, next.is_last});
    if (next.is_last) begun_.reset();
  }
}

bool FrameStream::begin_message() {
  std::optional<SocketBacklog::Waiting> next = backlog_.take();
  if (!next) return false;
  begun_.emplace(std::move(next->message), next->is_text, is_deflating_);
  return true;
}

void FrameStream::list_rest() {
  rest_.clear();
  std::size_t skipped = written_;  // of the first frame
  for (const Frame& frame : writing_)
    for (std::string_view part : {std::string_view(frame.head), frame.content}) {
      const std::size_t less = std::min(skipped, part.size());
      skipped -= less;
      part.remove_prefix(less);
      if (!part.empty()) rest_.emplace_back(part.data(), part.size());
    }
}

// True: all of it. What goes wrong, the next write will tell.
bool FrameStream::write_at_once() {
  if (stream_.is_encrypted()) return false;
  list_rest();
  beast::error_code failure;
  const std::size_t bytes = stream_.socket().write_some(rest_, failure);
  if (!failure) drop_written(bytes);
  return writing_.empty();
}

void FrameStream::write_later() {
  is_writing_ = is_behind_ = true;
  list_rest();
  stream_.async_write_some(
      rest_, [this, alive = writer_.lock()](beast::error_code failure, std::size_t bytes) {
        is_writing_ = false;
        if (failure) return fail(failure);
        drop_written(bytes);
        write();
      });
}

void FrameStream::drop_written(std::size_t bytes) {
  if (is_behind_) watch_.take(bytes);
  std::size_t of_messages = 0;
  while (!writing_.empty()) {
    Frame& first = writing_.front();
    const std::size_t left = first.size() - written_;
    if (bytes < left) {
      written_ += bytes;
      break;
    }
    bytes -= left;
    written_ = 0;
    if (first.message && first.is_last) of_messages += first.message->size();
    call_soon(get_executor(), std::move(first.done), {}, first.size());
    writing_.pop_front();
  }
  backlog_.is_sent(of_messages);
}

void FrameStream::fail(beast::error_code failure) {
  has_failed_ = true;
  backlog_.drop();
  begun_.reset();
  for (std::deque<Frame>* frames : {&writing_, &own_}) {
    for (Frame& frame : *frames) call_soon(get_executor(), std::move(frame.done), failure, 0);
    frames->clear();
  }
  if (const auto writer = writer_.lock()) writer->writing_failed();
}

}  // namespace heddle::engine
