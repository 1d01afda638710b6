// libFuzzer target: whatever a client sends over a WebSocket, the server hears its end, once, and
// goes on to talk to others. Two kinds of input, told apart by the first byte:
//
//   0xff           what stands on the wire behind the handshake
//   anything else  frames, each a first byte as on the wire (FIN, opcode), a length and the
//   content;
//                  they are masked here
//
// Build: clang++ -fsanitize=fuzzer,address,undefined.
#include <atomic>
#include <thread>

#include "engine/base/log.h"
#include "engine/serve/clients.h"
#include "engine/serve/http_server.h"
#include "tests/fuzz/served.h"

using namespace heddle::engine;
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

class Served {
 public:
  Served() {
    set_log_sink([](Level, std::string_view) {});
    ServerHandlers handlers;
    handlers.check = [](const HttpRequest&) { return std::optional<HttpResponse>(); };
    handlers.answer = [](const HttpRequest&) { return HttpResponse{}; };
    handlers.connect =
        [this](const HttpRequest&,
               const std::shared_ptr<WebSocket>& socket) -> std::optional<WebSocketEvents> {
      ++opened_;
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
    connection.send(
        "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
    require(connection.read("\r\n\r\n").starts_with("HTTP/1.1 101"),
            "the server opens a WebSocket");
    connection.send(bytes);
    connection.end();
    connection.read();
  }
  void await_end() const {
    for (int tries = 0; closed_ < opened_ || clients_.count() > 0; ++tries) {
      require(tries < 30'000, "the server hears the end of a connection");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    require(closed_ == opened_, "the end is told once");
  }

 private:
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
  static const Served served;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  served.talk(input.starts_with('\xff') ? std::string(input.substr(1)) : frames_of(input));
  served.await_end();
  return 0;
}
