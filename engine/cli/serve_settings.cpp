#include "engine/cli/serve_settings.h"

#include <charconv>
#include <optional>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/cli/read_values.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::quote;

std::optional<unsigned> read_days(const Layer& layer, std::string_view option) {
  std::optional<unsigned> days;
  for (const Given& given : layer.of(option)) days = read_number(given, 36'500, "days up to 36500");
  return days;
}

// A share of a disk would be of whichever lies there.
std::optional<std::uint64_t> read_disk_size(const Layer& layer, std::string_view option) {
  std::optional<std::uint64_t> bytes;
  for (const Given& given : layer.of(option)) {
    bytes = engine::parse_bytes(given.text);
    if (!bytes) refuse(given, cat("expected a size such as 20GiB, got ", quote(given.text), "."));
  }
  return bytes;
}

ServeSettings::Keep read_keep(const Layer& layer) {
  ServeSettings::Keep keep;
  keep.temp_days = read_days(layer, "keep-temp-days");
  keep.output_days = read_days(layer, "keep-output-days");
  keep.history_days = read_days(layer, "keep-history-days");
  keep.temp_bytes = read_disk_size(layer, "keep-temp-size");
  keep.output_bytes = read_disk_size(layer, "keep-output-size");
  keep.free_bytes = read_disk_size(layer, "keep-free").value_or(0);
  return keep;
}

void read_network(const Layer& layer, ServeSettings::Access& access) {
  for (const Given& given : layer.of("tls-cert")) access.tls_cert = read_path(given);
  for (const Given& given : layer.of("tls-key")) access.tls_key = read_path(given);
  for (const char* one : {"tls-cert", "tls-key"})
    if (!layer.of(one).empty() && access.tls_cert.empty() != access.tls_key.empty())
      refuse(layer.of(one).front(), "--tls-cert and --tls-key go together: give both.");
  for (const Given& given : layer.of("path-prefix")) {
    access.path_prefix = given.text;
    while (access.path_prefix.ends_with('/')) access.path_prefix.pop_back();
    const bool is_path = access.path_prefix.empty() || access.path_prefix.starts_with('/');
    if (!is_path || access.path_prefix.find_first_of("?#%;, \t") != std::string::npos)
      refuse(given, cat("expected a path such as /studio, got ", quote(given.text), "."));
  }
  access.trusted_proxies = read_words(layer, "trusted-proxy");
  for (const Given& given : layer.of("rate-limit"))
    access.requests_a_minute = read_number(given, 1'000'000, "requests a minute up to 1000000");
  for (const Given& given : layer.of("log-format")) {
    if (given.text != "text" && given.text != "json")
      refuse(given, cat("expected text or json, got ", quote(given.text), "."));
    access.has_json_log = given.text == "json";
  }
  access.logs_requests = read_flag(layer, "log-requests");
}

std::int64_t read_priority(const Given& given) {
  std::int64_t number = 0;
  const char* const end = given.text.data() + given.text.size();
  const auto read = std::from_chars(given.text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end)
    refuse(given, cat("expected a whole number, got ", quote(given.text), "."));
  return number;
}

}  // namespace

ServeSettings read_serve_settings(const Layer& layer) {
  ServeSettings serve;
  if (std::vector<std::string> addresses = read_words(layer, "listen"); !addresses.empty())
    serve.addresses = std::move(addresses);
  for (const Given& given : layer.of("port"))
    serve.port = std::uint16_t(read_number(given, 65'535, "a port from 0 to 65535"));
  for (const Given& given : layer.of("front-end")) serve.front_end = read_path(given).string();
  for (const Given& given : layer.of("user")) serve.user = read_path(given);
  for (const Given& given : layer.of("queue")) serve.queue = read_new_file(given);
  for (const Given& given : layer.of("jobs")) {
    serve.jobs = read_number(given, 256, "a number of jobs from 1 to 256");
    if (serve.jobs == 0) refuse(given, "expected a number of jobs from 1 to 256, got 0.");
  }
  for (const Given& given : layer.of("traces")) serve.traces = read_path(given);
  for (const Given& given : layer.of("packs")) serve.packs = read_path(given);
  for (const Given& given : layer.of("preview-method")) {
    const std::optional<PreviewMethod> method = preview_method_named(given.text);
    if (!method)
      refuse(given, cat("expected none, auto or taesd, got ", engine::quote(given.text), "."));
    serve.previews = *method;
  }
  for (const Given& given : layer.of("interrupted")) {
    using Interrupted = ServeSettings::Interrupted;
    if (given.text != "resume" && given.text != "again" && given.text != "fail")
      refuse(given, cat("expected resume, again or fail, got ", engine::quote(given.text), "."));
    serve.interrupted = given.text == "resume"  ? Interrupted::resume
                        : given.text == "again" ? Interrupted::again
                                                : Interrupted::fail;
  }
  for (const Given& given : layer.of("shutdown-seconds"))
    serve.shutdown_seconds = read_number(given, 86'400, "seconds up to 86400");
  for (const Given& given : layer.of("api-key")) {
    serve.api_key = given.text;
    if (serve.api_key.empty()) refuse(given, "expected a key, got an empty one.");
  }
  for (const Given& given : layer.of("api-keys")) serve.access.api_keys = read_path(given);
  serve.access.adds_admin = read_flag(layer, "admin");
  read_network(layer, serve.access);
  for (const Given& given : layer.of("enable-cors-header")) {
    serve.cors_origin = given.text;
    const bool is_origin = given.text.find("://") != given.text.npos && !given.text.ends_with('/');
    if (given.text != "*" && !is_origin)
      refuse(given, cat("expected an origin, as https://a.example, or *, got ",
                        engine::quote(given.text), "."));
  }
  serve.keep = read_keep(layer);
  serve.multi_user = read_flag(layer, "multi-user");
  serve.insecure = read_flag(layer, "insecure");
  return serve;
}

ServerSettings read_server_settings(const Layer& layer) {
  ServerSettings server;
  for (const Given& given : layer.of("server")) {
    server.url =
        given.text.find("://") == std::string::npos ? cat("http://", given.text) : given.text;
    while (server.url.ends_with('/')) server.url.pop_back();
    server.is_given = true;
    if (given.text.empty()) refuse(given, "expected an address, got an empty one.");
  }
  for (const Given& given : layer.of("api-key")) server.api_key = given.text;
  return server;
}

JobSettings read_job_settings(const Layer& layer) {
  JobSettings job;
  for (const Given& given : layer.of("priority")) job.priority = read_priority(given);
  for (const Given& given : layer.of("tag")) job.tag = given.text;
  for (const Given& given : layer.of("batch")) job.batch = given.text;
  for (const Given& given : layer.of("before")) job.before = given.text;
  for (const Given& given : layer.of("repeats")) {
    job.repeats = read_number(given, 1000, "a number of jobs from 1 to 1000");
    if (job.repeats == 0) refuse(given, "expected a number of jobs from 1 to 1000, got 0.");
  }
  job.front = read_flag(layer, "front");
  job.back = read_flag(layer, "back");
  job.background = read_flag(layer, "background");
  job.from_start = read_flag(layer, "from-start");
  job.zip = read_flag(layer, "zip");
  job.paused = read_flag(layer, "paused");
  job.wait = read_flag(layer, "wait");
  job.all = read_flag(layer, "all");
  job.but_running = read_flag(layer, "but-running");
  return job;
}

}  // namespace heddle::cli
