// libFuzzer target: whatever bytes a client sends, the server answers in HTTP or hangs up, and goes
// on to answer others. The input is what stands on the wire: requests one behind another, which go
// through the parser, the check of Host and Origin, the inflation of bodies, routes with their
// parts and queries, ranges of files, and the compression of answers. Build: clang++
// -fsanitize=fuzzer,address,undefined.
#include <filesystem>
#include <fstream>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/serve/access.h"
#include "engine/serve/compression.h"
#include "engine/serve/http_server.h"
#include "engine/serve/router.h"
#include "engine/serve/served_files.h"
#include "tests/fuzz/served.h"

using namespace heddle::engine;
using heddle::test::FuzzConnection;
using heddle::test::require;

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBytes = 1 << 20;

HttpResponse told(const Call& call) {
  Json parts = Json::object(), answer = Json::object();
  for (const auto& [name, value] : call.parts) {
    require(value.find('\0') == std::string::npos, "no part has a NUL");
    parts.set(name, value);
  }
  answer.set("parts", std::move(parts)).set("a", call.query.get("a"));
  answer.set("is", call.query.is_true("is")).set("body", call.request.body);
  return json_response(answer);
}

class Served {
 public:
  Served() {
    set_log_sink([](Level, std::string_view) {});
    folder_ = fs::temp_directory_path() / cat("heddle_http_fuzz_", ::getpid());
    fs::create_directories(folder_);
    std::ofstream(folder_ / "a.txt") << std::string(10'000, 'x');
    router_.add_twice("GET", "/one/{id}", told);
    router_.add_twice("POST", "/two/{file}/move/{dest}", told);
    router_.add_twice("GET", "/files/{path...}", [this](const Call& call) { return file(call); });
    router_.add("POST", "/body", told);
    ServerHandlers handlers;
    handlers.check = [](HttpRequest& head) {
      return check_access(head, {.cors_origin = "https://a.example"});
    };
    handlers.answer = [this](const HttpRequest& request) { return answer(request); };
    handlers.connect = [](const HttpRequest&, const std::shared_ptr<WebSocket>&) {
      return std::optional<WebSocketEvents>();
    };
    ServerOptions options;
    options.limits.body_bytes = kMostBytes;
    server_ = std::make_unique<HttpServer>(std::move(options), std::move(handlers));
  }
  ~Served() {
    server_.reset();
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::uint16_t port() const { return server_->port(); }

 private:
  HttpResponse file(const Call& call) const {
    const std::string& name = call.part("path");
    const std::optional<fs::path> path = is_safe_name(name) ? inside(folder_, name) : std::nullopt;
    if (!path) return text_response("403", 403);
    require(path->native().starts_with(folder_.native()), "no name leads out of its folder");
    return file_response(call.request, *path).value_or(text_response("404", 404));
  }
  HttpResponse answer(const HttpRequest& request) const {
    HttpRequest plain = request;
    if (std::optional<HttpResponse> refusal = inflate_body(plain, kMostBytes)) return *refusal;
    require(plain.body.size() <= kMostBytes, "no body grows beyond the limit");
    HttpResponse response = router_.answer(plain);
    compress_body(request, response);
    return response;
  }

  fs::path folder_;
  Router router_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Served served;
  {
    const FuzzConnection connection(served.port());
    connection.send({reinterpret_cast<const char*>(data), size});
    connection.end();
    const std::string answer = connection.read();
    require(answer.empty() || answer.starts_with("HTTP/1."), "an answer is HTTP");
  }
  static unsigned runs = 0;
  if (++runs % 64 != 0) return 0;
  const FuzzConnection other(served.port());
  other.send("GET /one/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  require(other.read().starts_with("HTTP/1.1 200"), "the server goes on to answer others");
  return 0;
}
