// What `heddle serve` costs beside the work itself, seen from a client on the same machine.
//   serve_bench PROGRAM SAMPLE_PLUGINS GRAPH [JOBS]
// It starts the program on a queue in a new folder, with the folder of the sample plugins, and
// prints
//   - its memory before any request (resident, and what is its own),
//   - the time from sending POST /prompt to the message that the first node runs (a graph of two
//     small nodes that is warm; JOBS of them one after another, 500),
//   - requests a second of GET /queue and GET /prompt over 8 connections that stay open,
//   - the time that GRAPH takes, a picture in steps, with no WebSocket client and with 200 of them
//     (one thread reads what they get), in turn, and whether each got the same messages in the same
//     order.
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/bench/serve_listeners.h"
#include "tests/engine/serve/http_client.h"
#include "tests/support/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using heddle::engine::Json;
using heddle::test::Connection;
using heddle::test::Reply;
using heddle::test::SocketClient;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "serve_bench: %s\n", why.c_str());
  std::exit(1);
}

// The server as a process of its own; it ends with this.
class Server {
 public:
  Server(const std::string& program, const std::string& plugins, const fs::path& folder) {
    const std::string out = (folder / "out").string();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setenv("HOME", folder.c_str(), 1);
      for (const char* name : {"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"})
        ::setenv(name, (folder / name).c_str(), 1);
      ::setenv("HEDDLE_PLUGINS", plugins.c_str(), 1);
      if (std::freopen(out.c_str(), "w", stdout) == nullptr) std::_Exit(127);
      if (std::freopen((out + ".err").c_str(), "w", stderr) == nullptr) std::_Exit(127);
      ::execl(program.c_str(), "heddle", "serve", "--port", "0", "--json", "--devices", "cpu",
              static_cast<char*>(nullptr));
      std::_Exit(127);
    }
    for (int left = 1200; port_ == 0 && left > 0; --left) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      std::string text;
      std::ifstream(out) >> text;
      if (const std::size_t at = text.find("127.0.0.1:"); at != text.npos)
        port_ = std::uint16_t(std::atoi(text.c_str() + at + 10));
    }
    if (port_ == 0) stop("the server gave no address");
  }
  ~Server() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  Server(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  // "VmRSS" and such of /proc, in MiB.
  double memory(const std::string& name) const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with(name + ":")) return std::atof(line.c_str() + name.size() + 1) / 1024;
    return 0;
  }
  // Of all its threads so far.
  double processor_seconds() const {
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string word;
    double ticks = 0;
    for (int field = 1; field <= 15 && stat >> word; ++field)
      if (field >= 14) ticks += std::atof(word.c_str());
    return ticks / double(::sysconf(_SC_CLK_TCK));
  }

 private:
  pid_t pid_ = 0;
  std::uint16_t port_ = 0;
};

std::string prompt(const std::string& nodes, const std::string& client) {
  return "{\"client_id\": \"" + client + "\", \"prompt\": {" + nodes + "}}";
}

// Every one is new to the cache.
std::string small_graph(int number) {
  return R"("a": {"class_type": "test.add", "inputs": {"a": )" + std::to_string(number) +
         R"(}}, "b": {"class_type": "test.keep", "inputs": {"value": ["a", 0]}})";
}

void submit_to(Connection& connection, const std::string& path, const std::string& body) {
  const Reply reply = connection.ask("POST", path, body);
  if (reply.status != 200) stop("POST " + path + ": " + std::to_string(reply.status) + reply.body);
}
void submit(Connection& connection, const std::string& body) {
  submit_to(connection, "/prompt", body);
}

std::string type_of(const Json& message) {
  const Json* type = message.find("type");
  return type == nullptr ? "" : type->as_string();
}

bool is_end(const Json& message) {
  const std::string type = type_of(message);
  return type == "execution_success" || type == "execution_error";
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[std::min(values.size() - 1, std::size_t(q * double(values.size())))];
}

void measure_first_node(const Server& server, int jobs) {
  SocketClient socket(server.port(), "/ws?clientId=first");
  Connection connection(server.port());
  std::vector<double> times;
  const double processor = server.processor_seconds();
  for (int i = 0; i < jobs + 20; ++i) {
    const std::string body = prompt(small_graph(i), "first");
    const Clock::time_point began = Clock::now();
    submit(connection, body);
    bool is_timed = false;
    while (true) {
      const Json message = socket.read_json();
      if (message.is_null()) stop("the WebSocket was closed");
      if (type_of(message) == "executing" && !is_timed) {
        is_timed = true;
        if (i >= 20) times.push_back(ms_since(began));
      }
      if (is_end(message)) break;
    }
  }
  std::printf(
      "POST /prompt to the first node: median %.2f ms, p99 %.2f ms, most %.2f ms (%d); %.0f us of "
      "the server's processor time for each job\n",
      quantile(times, 0.5), quantile(times, 0.99), quantile(times, 1), jobs,
      (server.processor_seconds() - processor) / (jobs + 20) * 1e6);
}

void measure_requests(const Server& server, const std::string& target) {
  constexpr int kConnections = 8, kRequests = 1000;
  std::atomic<int> failures = 0;
  const double processor = server.processor_seconds();
  const Clock::time_point began = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kConnections; ++t)
      threads.emplace_back([&] {
        Connection connection(server.port());
        for (int r = 0; r < kRequests; ++r)
          if (connection.ask("GET", target).status != 200) ++failures;
      });
  }
  const double seconds = ms_since(began) / 1000;
  std::printf(
      "GET %s: %.0f requests/s over %d connections, %.0f us of the server's processor time each, "
      "%d "
      "failed\n",
      target.c_str(), kConnections * kRequests / seconds, kConnections,
      (server.processor_seconds() - processor) / (kConnections * kRequests) * 1e6, failures.load());
}

struct Cost {
  double seconds = 0, processor = 0;  // that pass, and that the server's threads take
};

// Nobody's job: its messages and previews go to all that listen.
Cost cost_of_a_job(const Server& server, const std::string& nodes) {
  Connection connection(server.port());
  const Clock::time_point began = Clock::now();
  const double processor = server.processor_seconds();
  submit(connection, "{\"prompt\": " + nodes + "}");
  while (true) {
    const Json state = connection.ask("GET", "/prompt").json();
    if (state.at("exec_info").at("queue_remaining").as_int64() == 0)
      return {ms_since(began) / 1000, server.processor_seconds() - processor};
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A picture in steps, with another seed every time.
std::string drawing(const std::string& graph, int seed) {
  Json nodes = heddle::engine::parse_json(text_of(graph), graph);
  for (const Json::Member& node : nodes.members()) {
    Json inputs = node.value.at("inputs");
    for (const char* name : {"seed", "noise_seed"})
      if (inputs.find(name) != nullptr) inputs.set(name, seed);
    Json changed = node.value;
    nodes.set(node.key, std::move(changed.set("inputs", std::move(inputs))));
  }
  return heddle::engine::write_json(nodes);
}

void measure_listeners(const Server& server, const std::string& graph) {
  constexpr int kTurns = 5;
  std::vector<double> without, with, processor_without, processor_with;
  cost_of_a_job(server, drawing(graph, 0));
  for (int turn = 1; turn <= kTurns; ++turn) {
    const Cost alone = cost_of_a_job(server, drawing(graph, 2 * turn));
    without.push_back(alone.seconds);
    processor_without.push_back(alone.processor);
    heddle::test::Listeners listeners(server.port(), 200);
    const Cost watched = cost_of_a_job(server, drawing(graph, 2 * turn + 1));
    with.push_back(watched.seconds);
    processor_with.push_back(watched.processor);
    std::printf("200 clients: %s\n", listeners.finish().c_str());
  }
  std::printf("a picture without clients and with 200, medians of %d:\n", kTurns);
  std::printf("  %.3f and %.3f s, %.3f times, with what the clients take of the same processors\n",
              quantile(without, 0.5), quantile(with, 0.5),
              quantile(with, 0.5) / quantile(without, 0.5));
  std::printf("  %.2f and %.2f s of the server's own processor time, %.3f times\n",
              quantile(processor_without, 0.5), quantile(processor_with, 0.5),
              quantile(processor_with, 0.5) / quantile(processor_without, 0.5));
}

// Four run, and wait to be stopped; behind them wait ten.
void measure_full_queue(const Server& server) {
  Connection connection(server.port());
  for (int i = 0; i < 14; ++i)
    submit(connection, prompt(R"("w": {"class_type": "test.wait", "inputs": {}},
                     "b": {"class_type": "test.keep", "inputs": {"value": ["w", 0]}})",
                              "waits"));
  std::printf("with 14 jobs in the queue: ");
  measure_requests(server, "/queue");
  submit_to(connection, "/queue", R"({"clear": true})");
  submit_to(connection, "/interrupt", "{}");
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc < 4) stop("usage: serve_bench PROGRAM SAMPLE_PLUGINS GRAPH [JOBS]");
  const int jobs = argc > 4 ? std::atoi(argv[4]) : 500;
  const heddle::test::TemporaryFolder folder;
  const Server server(argv[1], argv[2], folder.path());
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::printf("idle: %.1f MiB resident, of which %.1f MiB are its own\n", server.memory("VmRSS"),
              server.memory("RssAnon"));
  measure_first_node(server, jobs);
  measure_requests(server, "/queue");
  measure_requests(server, "/prompt");
  measure_full_queue(server);
  measure_listeners(server, argv[3]);
  return 0;
}
