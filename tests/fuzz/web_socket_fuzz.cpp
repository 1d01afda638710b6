// libFuzzer target: whatever a client sends over a WebSocket, the server hears its end, once, and
// goes on to talk to others; and whatever the server sends arrives whole, in order and in frames as
// they have to be. Three kinds of input, told apart by the first byte:
//
//   0xff           what stands on the wire behind the handshake
//   0xfe           what the server sends and the client pings meanwhile; see sent_by()
//   anything else  frames, each a first byte as on the wire (FIN, opcode), a length and the
//   content;
//                  they are masked here
//
// Build: clang++ -fsanitize=fuzzer,address,undefined.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/log.h"
#include "engine/serve/clients.h"
#include "engine/serve/http_server.h"
#include "tests/fuzz/served.h"
#include "tests/support/frame_reader.h"

using namespace heddle::engine;
using heddle::test::FrameReader;
using heddle::test::FuzzConnection;
using heddle::test::require;

namespace {

std::string masked_frame(char first, std::string_view content) {
  std::string frame{first, char(0x80 | char(content.size()))};
  constexpr char kMask[4] = {1, 2, 3, 4};
  frame.append(kMask, 4);
  for (std::size_t i = 0; i < content.size(); ++i) frame += char(content[i] ^ kMask[i % 4]);
  return frame;
}

std::string frames_of(std::string_view input) {
  std::string frames;
  while (input.size() >= 2) {
    const char first = input[0];
    const std::size_t size = std::min<std::size_t>(std::uint8_t(input[1]) & 0x7f, input.size() - 2);
    frames += masked_frame(first, input.substr(2, std::min<std::size_t>(size, 125)));
    input.remove_prefix(2 + size);
  }
  return frames;
}

// Behind two bytes of how the client is: of each message one that says what it is (0, 3: a text;
// 1: binary; 2: a ping of the client's), one with a length, one with a number, by whose square what
// follows is repeated. 300,000 bytes each and a million together.
struct Sent {
  int kind = 0;
  std::string content;
};
std::vector<Sent> sent_by(std::string_view input) {
  std::vector<Sent> sent;
  std::size_t left = 1'000'000;
  while (input.size() >= 3 && left > 0) {
    Sent next{input[0] & 3, ""};
    const std::size_t size = std::min<std::size_t>(std::uint8_t(input[1]), input.size() - 3);
    const std::size_t often = std::uint8_t(input[2]), times = next.kind == 2 ? 1 : often * often;
    const std::size_t longest = next.kind == 2 ? 125 : 300'000;
    const std::string_view once = input.substr(3, size);
    const std::size_t most = std::min({left, longest, once.size() * times});
    while (next.content.size() < most) next.content += once.substr(0, most - next.content.size());
    left -= next.content.size();
    input.remove_prefix(3 + size);
    sent.push_back(std::move(next));
  }
  return sent;
}

class Served {
 public:
  Served() {
    set_log_sink([](Level, std::string_view) {});
    ServerHandlers handlers;
    handlers.check = [](const HttpRequest&) { return std::optional<HttpResponse>(); };
    handlers.answer = [](const HttpRequest&) { return HttpResponse{}; };
    handlers.connect =
        [this](const HttpRequest& head,
               const std::shared_ptr<WebSocket>& socket) -> std::optional<WebSocketEvents> {
      ++opened_;
      if (head.path == "/written") return written_to(socket);
      WebSocketEvents events = clients_.connect("", operator_caller(), socket);
      events.closed = [this, closed = std::move(events.closed)] {
        closed();
        ++closed_;
      };
      return events;
    };
    ServerOptions options;
    options.limits.socket_message_bytes = 1 << 16;
    server_ = std::make_unique<HttpServer>(std::move(options), std::move(handlers));
  }
  ~Served() {
    server_->stop();
    clients_.forget_all();
  }

  void talk(std::string_view bytes) const {
    const FuzzConnection connection(server_->port());
    open(connection, "/ws", "permessage-deflate");
    connection.send(bytes);
    connection.end();
    connection.read();
  }
  // Of `input` the first byte says whether the client takes deflated messages and whether its
  // system keeps little, the second how many bytes it reads at once.
  void listen(std::string_view input) {
    if (input.size() < 2) return;
    const bool deflates = (input[0] & 1) != 0;
    const std::size_t at_once = 1 + 64 * std::size_t(std::uint8_t(input[1]));
    const std::vector<Sent> sent = sent_by(input.substr(2));
    const FuzzConnection connection(server_->port(), (input[0] & 2) != 0 ? 32 << 10 : 0);
    open(connection, "/written", deflates ? "permessage-deflate; client_max_window_bits" : "none");
    const std::shared_ptr<WebSocket> socket = taken();
    for (const Sent& each : sent) {
      if (each.kind == 2)
        connection.send(masked_frame(char(0x89), each.content));
      else if (each.kind == 1)
        socket->send_binary(std::make_shared<const SocketMessage>(each.content), false);
      else
        socket->send_text(std::make_shared<const SocketMessage>(each.content));
    }
    socket->finish();
    FrameReader reader(deflates ? std::optional<int>(SocketMessage::kWindowBits) : std::nullopt);
    try {
      while (reader.controls.empty() || reader.controls.back().opcode != 8) {
        const std::string piece = connection.next(at_once);
        require(!piece.empty(), "the connection ends by a farewell");
        reader.read(piece);
      }
    } catch (const std::runtime_error& error) {
      require(false, error.what());
    }
    connection.send(masked_frame(char(0x88), "\x03\xe8"));
    connection.end();
    connection.read();
    compare(sent, reader, deflates);
  }
  void await_end() const {
    for (int tries = 0; closed_ < opened_ || clients_.count() > 0; ++tries) {
      require(tries < 30'000, "the server hears the end of a connection");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    require(closed_ == opened_, "the end is told once");
  }

 private:
  static void open(const FuzzConnection& connection, const char* path, const char* extension) {
    connection.send(std::string("GET ") + path +
                    " HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                    "Sec-WebSocket-Extensions: " +
                    extension + "\r\n\r\n");
    require(connection.read("\r\n\r\n").starts_with("HTTP/1.1 101"),
            "the server opens a WebSocket");
  }

  WebSocketEvents written_to(const std::shared_ptr<WebSocket>& socket) {
    const std::lock_guard lock(mutex_);
    written_ = socket;
    is_there_.notify_all();
    return {{}, [this] { ++closed_; }};
  }
  std::shared_ptr<WebSocket> taken() {
    std::unique_lock lock(mutex_);
    require(is_there_.wait_for(lock, std::chrono::seconds(30), [&] { return written_ != nullptr; }),
            "the server tells of a WebSocket");
    return std::exchange(written_, nullptr);
  }

  static void compare(const std::vector<Sent>& sent, const FrameReader& reader, bool deflates) {
    std::size_t messages = 0, pongs = 0;
    std::vector<std::string> pings;
    for (const Sent& each : sent) {
      if (each.kind == 2) {
        pings.push_back(each.content);
        continue;
      }
      require(messages < reader.messages.size(), "every message arrives");
      const FrameReader::Message& got = reader.messages[messages++];
      require(got.content == each.content, "a message arrives as it was sent");
      require(got.is_text == (each.kind != 1), "a text is a text");
      require(!got.was_deflated || (deflates && got.is_text), "what is deflated was agreed upon");
    }
    require(messages == reader.messages.size() && !reader.is_within(), "nothing else arrives");
    for (const FrameReader::Control& each : reader.controls) {
      if (each.opcode == 10)  // those behind the server's farewell are left out
        require(pongs < pings.size() && each.content == pings[pongs++],
                "pings are answered in order");
      if (each.opcode == 8) require(each.content == "\x03\xe8", "it is a normal end");
    }
  }

  std::mutex mutex_;
  std::condition_variable is_there_;
  std::shared_ptr<WebSocket> written_;  // mutex_
  Clients clients_{{[](const std::string& id, const Caller&) {
                      Json hello = Json::object();
                      return std::vector<Json>{hello.set("sid", id)};
                    },
                    [] { return Json::object(); }}};
  std::atomic<std::uint64_t> opened_ = 0, closed_ = 0;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Served served;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('\xfe'))
    served.listen(input.substr(1));
  else
    served.talk(input.starts_with('\xff') ? std::string(input.substr(1)) : frames_of(input));
  served.await_end();
  return 0;
}
