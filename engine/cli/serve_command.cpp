#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/interrupt.h"
#include "engine/cli/log_format.h"
#ifdef HEDDLE_WITH_SERVE
#include "engine/serve/log_lines.h"
#include "engine/serve/service.h"
#endif

namespace heddle::cli {

#ifdef HEDDLE_WITH_SERVE
namespace {

namespace fs = std::filesystem;
using engine::cat;
using engine::Code;
using engine::Error;

fs::path environment_path(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// What lasts and is nobody's but the user's.
fs::path state_folder() {
  fs::path state = environment_path("XDG_STATE_HOME");
  if (const fs::path home = environment_path("HOME"); state.empty() && !home.empty())
    state = home / ".local/state";
  if (state.empty())
    throw Error(Code::invalid_argument,
                "there is no place for the queue, as HOME is not set. Name one with --queue FILE "
                "and --user DIR.");
  std::error_code failure;
  fs::create_directories(state / "heddle", failure);
  if (failure) throw engine::system_error((state / "heddle").string(), failure.value());
  fs::permissions(state / "heddle", fs::perms::owner_all, failure);
  return state / "heddle";
}

fs::path user_folder(const Settings& settings) {
  if (!settings.serve.user.empty()) return settings.serve.user;
  const fs::path& comfyui = settings.engine.comfyui_dir;
  return comfyui.empty() ? state_folder() / "user" : comfyui / "user";
}

std::filesystem::path traces_folder(const fs::path& folder) {
  std::error_code failure;
  if (!folder.empty()) fs::create_directories(folder, failure);
  if (failure) throw engine::system_error(cat("--traces: ", folder.string()), failure.value());
  return folder;
}

// Whoever reaches the port can run anything that a workflow can.
void require_safety(const ServeSettings& serve) {
  if (serve.insecure || !serve.api_key.empty() || !serve.access.api_keys.empty()) return;
  for (const std::string& address : serve.addresses)
    if (!engine::is_loopback_name(address) && engine::unix_path(address).empty())
      throw Error(
          Code::invalid_argument,
          cat("--listen: others can ask at ", engine::quote(address),
              ". Set a key for them in HEDDLE_API_KEY, name a file of keys with --api-keys, "
              "or say --insecure to let everybody in."));
}

engine::RetentionOptions retention_of(const ServeSettings::Keep& keep) {
  const auto age = [](const std::optional<unsigned>& days) {
    return days ? std::optional<std::chrono::seconds>(std::chrono::days(*days)) : std::nullopt;
  };
  engine::RetentionOptions retention;
  retention.temp = {age(keep.temp_days), keep.temp_bytes};
  retention.output = {age(keep.output_days), keep.output_bytes};
  retention.history = age(keep.history_days);
  retention.free_bytes = keep.free_bytes;
  return retention;
}

engine::ProxyRules proxy_of(const ServeSettings::Access& access) {
  engine::ProxyRules rules;
  rules.prefix = access.path_prefix;
  for (const std::string& text : access.trusted_proxies) {
    const auto address = engine::ProxyAddress::parse(text);
    if (!address)
      throw Error(Code::invalid_argument,
                  cat("--trusted-proxy: ", engine::quote(text),
                      " is no address of a proxy. Give 127.0.0.1, a network as 10.0.0.0/8, or "
                      "unix."));
    rules.trusted.push_back(*address);
  }
  return rules;
}

// Each connection takes a file number, and so do the queue, models and outputs: the limit of the
// system's default is low, and half of what there is stays for them.
std::size_t connections_at_most(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(wanted, limit.rlim_cur / 2);
}

void set_network(const ServeSettings& serve, engine::ServiceOptions& options) {
  options.cors_origin = serve.cors_origin;
  options.proxy = proxy_of(serve.access);
  options.requests_a_minute = serve.access.requests_a_minute;
  options.server.tls = {serve.access.tls_cert, serve.access.tls_key};
  options.server.limits.connections = connections_at_most(options.server.limits.connections);
  if (serve.access.logs_requests)
    options.request_log = [is_json = serve.access.has_json_log](const engine::RequestLine& line) {
      to_stderr(is_json ? json_line(line) : text_line(line));
    };
}

engine::ServiceOptions options_of(const Settings& settings) {
  const ServeSettings& serve = settings.serve;
  engine::ServiceOptions options;
  options.queue_file = serve.queue.empty() ? state_folder() / "queue.db" : serve.queue;
  options.user_dir = user_folder(settings);
  options.front_end = engine::find_front_end(serve.front_end);
  options.server.addresses = serve.addresses;
  options.server.port = serve.port;
  options.api_key = serve.api_key;
  options.api_keys = serve.access.api_keys;
  set_network(serve, options);
  options.multi_user = serve.multi_user;
  options.packs = serve.packs;
  options.runner.jobs = serve.jobs;
  options.runner.previews = serve.previews;
  options.runner.traces = traces_folder(serve.traces);
  options.runner.checkpoint_every = settings.checkpoints.every;
  options.runner.resumes = serve.interrupted == ServeSettings::Interrupted::resume;
  options.runner.shutdown = std::chrono::seconds(serve.shutdown_seconds);
  if (serve.interrupted == ServeSettings::Interrupted::fail)
    options.queue.interrupted = engine::JobQueueOptions::Interrupted::fail;
  options.retention = retention_of(serve.keep);
  options.arguments = {"heddle", "serve"};
  return options;
}

// What is logged is for whoever looks at the terminal, and for front ends.
class LogToBoth {
 public:
  LogToBoth(std::shared_ptr<engine::LogLines> lines, bool is_json) {
    engine::set_log_sink([lines, is_json](engine::Level level, std::string_view message) {
      const std::string text =
          cat("heddle: ", engine::level_name(level), ": ", engine::printable(message));
      to_stderr(is_json ? json_line(level, message) : text);
      lines->add(text);
    });
  }
  ~LogToBoth() { engine::set_log_sink({}); }
  LogToBoth(const LogToBoth&) = delete;
};

// From a signal on: jobs come to their next step, where that is of use, and the rest is put in
// order.
std::chrono::milliseconds grace_of(const Settings& settings) {
  constexpr std::chrono::seconds kToEnd{20};
  const bool leaves = settings.checkpoints.every > 0;
  return kToEnd + std::chrono::seconds(leaves ? settings.serve.shutdown_seconds : 0);
}

void announce(const engine::Service& service, const Settings& settings, Output& output) {
  for (const std::string& url : service.urls())
    if (settings.json)
      output.write(cat("{\"event\":\"listening\",\"url\":\"", url, "\"}\n"));
    else
      output.write(cat("heddle serves ComfyUI's API at ", url, "\n"));
}

}  // namespace

int serve_jobs(const Request& request, Output& output) {
  const Settings& settings = request.settings;
  require_safety(settings.serve);
  // What others make and upload here is for whoever the server lets see it, and not for all who
  // have an account on the machine.
  ::umask(0077);
  engine::ServiceOptions options = options_of(settings);
  options.log = std::make_shared<engine::LogLines>();
  const LogToBoth log(options.log, settings.serve.access.has_json_log);
  set_exit_code(kExitDone);  // a signal is how a server is told to end
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  Interrupt interrupt(
      [&] {
        const std::lock_guard lock(mutex);
        is_over = true;
        changed.notify_all();
      },
      grace_of(settings));
  heddle::Engine engine(settings.engine);
  engine::Service service(engine, std::move(options));
  interrupt.before_runs();
  announce(service, settings, output);
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return is_over; });
  return kExitDone;
}
#else
int serve_jobs(const Request&, Output&) {
  throw engine::Error(engine::Code::unsupported,
                      "this heddle was built without SQLite, so it cannot serve. Install "
                      "libsqlite3-dev and build again.");
}
#endif

}  // namespace heddle::cli
