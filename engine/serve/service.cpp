#include "engine/serve/service.h"

#include <algorithm>
#include <chrono>

#include "engine/base/text.h"
#include "engine/serve/authorization.h"
#include "engine/serve/compression.h"
#include "engine/serve/event_sockets.h"
#include "engine/serve/log_lines.h"
#include "engine/serve/served_files.h"
#include "engine/serve/v1.h"

namespace heddle::engine {
namespace {

bool is_local(const ServiceOptions& options) {
  return std::ranges::all_of(options.server.addresses, [](const std::string& address) {
    return is_loopback_name(address) || !unix_path(address).empty();
  });
}

bool ends_with_any(std::string_view path, std::initializer_list<std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view end) { return path.ends_with(end); });
}

// As ComfyUI's server tells browsers what to keep.
void set_caching(std::string_view path, HttpResponse& response) {
  for (const auto& [name, value] : response.headers)
    if (name == "Cache-Control") return;
  const bool is_index = path.ends_with(".json") && path.find("/index") != path.npos;
  if (ends_with_any(path, {".js", ".css"}) || is_index) {
    response.set("Cache-Control", "no-cache");
  } else if (ends_with_any(path, {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff",
                                  ".webp"})) {
    if (response.status == 404)
      response.set("Cache-Control", "public, max-age=3600");
    else if (response.status < 300 || response.status == 301 || response.status == 308)
      response.set("Cache-Control", "public, max-age=86400");
    else if (response.status < 400)
      response.set("Cache-Control", "no-cache");
  }
}

std::unique_ptr<Authenticator> authenticator_of(const ServiceOptions& options) {
  if (options.api_key.empty() && options.api_keys.empty()) return nullptr;
  return std::make_unique<Authenticator>(
      options.api_key, Authenticator::Clock(),
      options.api_keys.empty() ? nullptr : std::make_unique<KeyRing>(options.api_keys));
}

std::int64_t version_of(const heddle::Engine& engine, const OwnedFile& file) {
  const bool is_one = file.folder == "input" || file.folder == "output" || file.folder == "temp";
  if (!is_one || !is_safe_name(file.name)) return 0;
  const std::vector<std::filesystem::path> places = engine.folder_places(file.folder);
  const auto path = places.empty() ? std::nullopt : inside(places.front(), file.name);
  std::error_code failure;
  if (!path || !std::filesystem::is_regular_file(*path, failure)) return 0;
  const auto time = std::filesystem::last_write_time(*path, failure).time_since_epoch().count();
  return failure ? 0 : std::int64_t(time) | 1;
}

HttpResponse too_many_requests(std::int64_t seconds, unsigned a_minute) {
  Json error = Json::object();
  error.set("error", cat("more than ", a_minute, " requests came within a minute. Try again in ",
                         seconds, " s."));
  return json_response(error, 429).set("Retry-After", cat(seconds));
}

void tell_request(const HttpRequest& request, const HttpResponse& response,
                  const std::function<void(const RequestLine&)>& log) {
  if (!log) return;
  const std::chrono::duration<double, std::milli> time =
      std::chrono::steady_clock::now() - request.begun;
  log({request.id, request.method, request.path, request.peer, request.caller.user, response.status,
       response.file ? response.file->bytes : response.body.size(), time.count()});
}

// In time, so that no later server begins with a number that was given away already.
std::uint64_t first_event(const ServiceOptions& options) {
  constexpr std::uint64_t kEventsOfOneMs = 1000;
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t ms = options.queue.clock
                              ? options.queue.clock()
                              : std::chrono::duration_cast<milliseconds>(now).count();
  return std::uint64_t(std::max<std::int64_t>(ms, 1)) * kEventsOfOneMs;
}

}  // namespace

Json server_features(const ServerLimits& limits) {
  Json features = Json::object();
  features.set("supports_preview_metadata", true).set("max_upload_size", limits.body_bytes);
  return std::move(features.set("assets", false).set("node_replacements", true));
}

Json status_message(const JobQueue& queue, const std::string& client) {
  const JobCounts counts = queue.counts();
  Json info = Json::object(), status = Json::object(), data = Json::object(),
       message = Json::object();
  info.set("queue_remaining", counts.pending + counts.running);
  data.set("status", std::move(status.set("exec_info", std::move(info))));
  if (!client.empty()) data.set("sid", client);
  return std::move(message.set("type", "status").set("data", std::move(data)));
}

Json told_state(const std::string& id, const std::optional<Job>& job) {
  Json told = Json::object();
  told.set("job", id).set("state", job ? Json(job_state_name(job->state)) : Json("deleted"));
  if (job) {
    told.set("tag", text_or_null(job->tag)).set("batch", text_or_null(job->batch));
    told.set("user", text_or_null(job->user)).set("is_cancel_wanted", job->is_cancel_wanted);
  }
  return told;
}

Service::Service(heddle::Engine& engine, ServiceOptions options)
    : options_(std::move(options)),
      authenticator_(authenticator_of(options_)),
      rules_{is_local(options_), authenticator_.get(), options_.front_end.is_served(),
             options_.cors_origin},
      clients_({[this](const std::string& client, const Caller& caller) {
                  return greeting(client, caller);
                },
                [this] { return server_features(options_.server.limits); }}),
      events_(first_event(options_)),
      owners_(
          options_.api_keys.empty() ? std::string() : cat(options_.queue_file.string(), ".owners"),
          [&engine](const OwnedFile& file) { return version_of(engine, file); }),
      limiter_(options_.requests_a_minute) {
  JobQueueOptions queue = options_.queue;
  queue.changed = [this](const std::vector<std::string>& ids) { tell_change(ids); };
  queue.forgotten = [this](const std::string& id, const std::string& user) {
    const std::lock_guard lock(telling_);
    forgotten_[id] = user;
  };
  queue_ = std::make_unique<JobQueue>(options_.queue_file, std::move(queue));
  RunnerOptions runner = options_.runner;
  runner.shown = [this](const Job& job, std::string_view ui) { owners_.add_shown(ui, job.user); };
  // As a user: whether it was an administrator's nobody knows any more. The log has all of it.
  runner.tellable = [this](const Job& job, Json texts) {
    return job.user.empty() ? texts
                            : owners_.without_names({job.user, false, ""}, std::move(texts));
  };
  if (runner.checkpoint_dir.empty())
    runner.checkpoint_dir = cat(options_.queue_file.string(), ".checkpoints");
  runner_ =
      std::make_unique<Runner>(engine, *queue_, clients_, events_, metrics_, std::move(runner));
  retention_ = std::make_unique<Retention>(engine, *queue_, options_.retention);
  const ServiceParts parts{engine,
                           *queue_,
                           *runner_,
                           clients_,
                           events_,
                           metrics_,
                           owners_,
                           options_,
                           authenticator_.get(),
                           ending_.get_token()};
  add_prompt_routes(router_, parts);
  add_history_routes(router_, parts);
  add_job_routes(router_, parts);
  add_log_routes(router_, parts);
  add_info_routes(router_, parts);
  add_backup_routes(router_, parts);
  add_user_routes(router_, parts);
  add_v1_submit_routes(router_, parts);
  add_v1_job_routes(router_, parts);
  add_v1_device_routes(router_, parts);
  add_v1_model_routes(router_, parts);
  add_session_routes(router_, parts);
  add_page_routes(router_, parts);
  add_v1_event_routes(router_, parts);
  add_v1_trace_routes(router_, parts);
  add_metrics_routes(router_, parts);
  add_file_routes(router_, parts);
  router_.set_guard(
      [this](const Call& call, std::string_view pattern) { authorize(call, pattern, *queue_); });
  ServerHandlers handlers;
  handlers.check = [this](HttpRequest& head) { return check(head); };
  handlers.answer = [this](const HttpRequest& request) { return answer(request); };
  handlers.takes_long = loads_models;
  handlers.connect = [this](const HttpRequest& head, const std::shared_ptr<WebSocket>& socket) {
    return connect(head, socket);
  };
  server_ = std::make_unique<HttpServer>(options_.server, std::move(handlers));
  runner_->start();
  retention_->start();
}

Service::~Service() {
  if (options_.log != nullptr) options_.log->listen({});
  ending_.request_stop();
  server_->stop();  // routes use all the rest
  retention_.reset();
  runner_.reset();
  clients_.forget_all();
  events_.forget_all();
}

// Whoever listens has shown a key when they came; by now it may be taken away.
void Service::let_go() {
  if (authenticator_ == nullptr || options_.api_keys.empty()) return;
  const auto is_gone = [&](const Caller& caller) { return !authenticator_->is_current(caller); };
  clients_.close_all(is_gone);
  events_.close_all(is_gone);
}

void Service::tell_change(const std::vector<std::string>& ids) {
  let_go();
  const std::lock_guard lock(telling_);
  for (const std::string& id : ids) {
    const std::optional<Job> job = queue_->find_brief(id);
    const auto gone = forgotten_.extract(id);
    const std::string user = job ? job->user : gone ? gone.mapped() : "";
    const Json told = told_state(id, job);
    events_.publish("job", {id, user}, told, !job || has_ended(job->state));
  }
  const JobCounts jobs = queue_->counts();
  Json counts = Json::object();
  counts.set("pending", jobs.pending).set("running", jobs.running).set("paused", jobs.paused);
  counts.set("ended", jobs.ended).set("is_paused", queue_->is_paused());
  events_.publish("queue", {}, counts);
  // Under the lock, too: the last that is sent is what is so at last.
  clients_.send_to_all(status_message(*queue_));
}

std::vector<Json> Service::greeting(const std::string& client, const Caller& caller) const {
  std::vector<Json> messages{status_message(*queue_, client)};
  // Without a node it would say that the job is over.
  const std::optional<std::string> node = runner_->running_node(client, caller);
  if (node && !node->empty()) {
    Json data = Json::object(), message = Json::object();
    data.set("node", *node);
    messages.push_back(message.set("type", "executing").set("data", std::move(data)));
  }
  return messages;
}

std::optional<WebSocketEvents> Service::connect(const HttpRequest& head,
                                                const std::shared_ptr<WebSocket>& socket) {
  const bool follows = head.path == "/v1/events";
  if (head.path != "/ws" && head.path != "/api/ws" && !follows) return {};
  tell_request(head, {101, {}, "", {}}, options_.request_log);
  if (follows) return follow_events(head, socket, events_, *queue_, options_.event_readers);
  return clients_.connect(Query(head.query).get("clientId"), head.caller, socket);
}

HttpResponse Service::routed(const HttpRequest& request) const {
  if (request.method == "OPTIONS") return {};
  if (request.header("Content-Encoding") == nullptr) return router_.answer(request);
  HttpRequest plain = request;
  if (auto refusal = inflate_body(plain, options_.server.limits.body_bytes)) return *refusal;
  return router_.answer(plain);
}

std::optional<HttpResponse> Service::check(HttpRequest& head) {
  head.begun = std::chrono::steady_clock::now();
  head.id = request_id_of(head);
  take_forwarded(head, options_.proxy);
  std::optional<HttpResponse> refusal = check_access(head, rules_);
  if (!refusal) {
    const std::string who =
        head.caller.key.empty() ? cat("address ", head.peer) : cat("key ", head.caller.key);
    if (const std::int64_t seconds = limiter_.take(who); seconds > 0)
      refusal = too_many_requests(seconds, options_.requests_a_minute);
  }
  if (!refusal) return {};
  return finished(head, *std::move(refusal));
}

HttpResponse Service::answer(const HttpRequest& request) {
  HttpResponse response = finished(request, routed(request));
  compress_body(request, response);
  add_cors_headers(rules_, response);
  return response;
}

// What all answers have.
HttpResponse Service::finished(const HttpRequest& request, HttpResponse response) {
  metrics_.answered(response.status);
  if (is_v1(request.path))
    response = as_v1(request, std::move(response));
  else
    set_caching(request.path, response);
  for (auto& [name, value] : response.headers)
    if (name == "Location" && value.starts_with('/')) value = request.prefix + value;
  response.set("X-Request-Id", request.id);
  tell_request(request, response, options_.request_log);
  return response;
}

}  // namespace heddle::engine
