#include "engine/serve/event_sockets.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <string>
#include <string_view>

#include "engine/base/text.h"
#include "engine/serve/service.h"
#include "engine/serve/url.h"

namespace heddle::engine {
namespace {

// The value of a line "NAME: VALUE"; "": there is none.
std::string_view line_of(std::string_view piece, std::string_view name) {
  while (!piece.empty()) {
    const std::string_view line = piece.substr(0, piece.find('\n'));
    if (line.starts_with(name) && line.substr(name.size()).starts_with(": "))
      return line.substr(name.size() + 2);
    piece.remove_prefix(std::min(piece.size(), line.size() + 1));
  }
  return {};
}

// What the log sends to a stream, for a socket.
class SocketStream : public HttpStream {
 public:
  explicit SocketStream(std::shared_ptr<WebSocket> socket) : socket_(std::move(socket)) {}

  bool send(std::string piece) override {
    if (is_gone_) return false;
    const std::string_view id = line_of(piece, "id"), type = line_of(piece, "event"),
                           data = line_of(piece, "data");
    if (!type.empty())
      socket_->send_text(std::make_shared<const SocketMessage>(
          cat("{\"id\":", id.empty() ? "null" : id, ",\"event\":", write_json(Json(type)),
              ",\"data\":", data, "}")));
    return true;
  }
  void close() override {
    if (!is_gone_.exchange(true)) socket_->finish();
  }
  bool is_read() const override { return !is_gone_; }
  void leave() { is_gone_ = true; }

 private:
  const std::shared_ptr<WebSocket> socket_;
  std::atomic<bool> is_gone_ = false;
};

}  // namespace

std::optional<WebSocketEvents> follow_events(const HttpRequest& head,
                                             const std::shared_ptr<WebSocket>& socket,
                                             EventLog& events, const JobQueue& queue,
                                             std::size_t most_readers) {
  const Query query(head.query);
  std::optional<std::uint64_t> after;
  if (const std::string text = query.get("after"); !text.empty()) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), after.emplace());
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return {};
  }
  if (events.readers() >= most_readers) return {};
  const std::string id = query.get("job");
  const auto find = [&] { return id.empty() ? std::nullopt : queue.find_brief(id); };
  if (const std::optional<Job> job = find();
      !id.empty() && (!job || !head.caller.may_see(job->user)))
    return {};
  const auto stream = std::make_shared<SocketStream>(socket);
  try {
    events.follow(stream, after, id, head.caller);
    // It may have ended before it was followed.
    if (const std::optional<Job> job = find(); !id.empty() && (!job || has_ended(job->state)))
      events.close(stream, id, told_state(id, job));
  } catch (...) {
    stream->leave();  // nobody is told of its end
    throw;
  }
  // The log has the stream, and the stream the socket, which has this.
  return WebSocketEvents{[](std::string_view, bool) {},
                         [weak = std::weak_ptr(stream)] {
                           if (const auto there = weak.lock()) there->leave();
                         }};
}

}  // namespace heddle::engine
