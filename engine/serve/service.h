// `heddle serve`: ComfyUI's API over a queue that lasts, and the engine that runs its jobs. Puts
// the parts together and owns them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/queue/job_queue.h"
#include "engine/serve/access.h"
#include "engine/serve/clients.h"
#include "engine/serve/event_log.h"
#include "engine/serve/file_owners.h"
#include "engine/serve/forwarded.h"
#include "engine/serve/front_end.h"
#include "engine/serve/http_server.h"
#include "engine/serve/metrics.h"
#include "engine/serve/rate_limiter.h"
#include "engine/serve/request_log.h"
#include "engine/serve/retention.h"
#include "engine/serve/router.h"
#include "engine/serve/runner.h"
#include "heddle/engine.hpp"

namespace heddle::engine {

class LogLines;

// Over 15 members: what a server is given, each by itself and with a default.
struct ServiceOptions {
  std::filesystem::path queue_file;  // made where there is none; its folder has to be there
  FrontEnd front_end;
  std::filesystem::path user_dir;  // of settings and workflows, by user; empty: none are kept
  ServerOptions server;
  bool multi_user = false;         // each has a folder of their own there
  std::string api_key;             // of the operator; empty: none
  std::filesystem::path api_keys;  // a file of users' keys; empty: none. Requests bring one of both
  std::string cors_origin;         // whose pages may ask, as AccessRules has it
  ProxyRules proxy;
  std::filesystem::path packs;     // a folder of Python packs, for the front end; empty: none
  unsigned requests_a_minute = 0;  // of a key, or of an address; 0: no limit
  // Called when a request is answered, on a thread of the server; empty: nobody wants to know.
  std::function<void(const RequestLine&)> request_log;
  JobQueueOptions queue;
  RunnerOptions runner;  // checkpoint_dir: empty: beside the queue
  RetentionOptions retention;
  std::size_t event_readers = 256;     // that follow events at a time; further ones get 503
  std::vector<std::string> arguments;  // of the program, for people
  std::shared_ptr<LogLines> log;       // what front ends show of the log; nullptr: nothing
};

// What routes answer with.
struct ServiceParts {
  heddle::Engine& engine;
  JobQueue& queue;
  Runner& runner;
  Clients& clients;
  EventLog& events;
  Metrics& metrics;
  FileOwners& owners;
  const ServiceOptions& options;
  Authenticator* authenticator = nullptr;  // none: everybody may ask
  std::stop_token ending = {};             // asked for when the service ends: nobody waits then
};

// Over 15 members: each a part of a server, with a header of its own.
class Service {
 public:
  // Answers from now on. Throws Error where the queue's file or an address cannot be used.
  Service(heddle::Engine& engine, ServiceOptions options);
  // What runs is stopped, and runs again when there is a service for the queue again.
  ~Service();
  Service(const Service&) = delete;

  std::uint16_t port() const { return server_->port(); }
  std::vector<std::string> urls() const { return server_->urls(); }
  JobQueue& queue() { return *queue_; }
  const Router& router() const { return router_; }
  const Clients& clients() const { return clients_; }
  const EventLog& events() const { return events_; }

 private:
  std::vector<Json> greeting(const std::string& client, const Caller& caller) const;
  std::optional<WebSocketEvents> connect(const HttpRequest& head,
                                         const std::shared_ptr<WebSocket>& socket);
  std::optional<HttpResponse> check(HttpRequest& head);
  HttpResponse answer(const HttpRequest& request);
  HttpResponse finished(const HttpRequest& request, HttpResponse response);
  HttpResponse routed(const HttpRequest& request) const;
  void tell_change(const std::vector<std::string>& ids);
  void let_go();

  const ServiceOptions options_;
  const std::unique_ptr<Authenticator> authenticator_;  // nullptr: no key
  const AccessRules rules_;
  Clients clients_;
  EventLog events_;
  Metrics metrics_;
  FileOwners owners_;
  RateLimiter limiter_;
  std::stop_source ending_;
  std::mutex telling_;  // so that what is told of a job last is what is true last
  std::map<std::string, std::string>
      forgotten_;  // telling_: jobs that are gone, and whose they were
  std::unique_ptr<JobQueue> queue_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Retention> retention_;
  Router router_;
  std::unique_ptr<HttpServer> server_;
};

// What a client learns of the server.
Json server_features(const ServerLimits& limits);
// {"type": "status", ...}: how many jobs wait and run.
Json status_message(const JobQueue& queue, const std::string& client = {});

// What events say of a job; of none: that it is deleted.
Json told_state(const std::string& id, const std::optional<Job>& job);

// The routes, by subject.
void add_prompt_routes(Router& router, const ServiceParts& parts);
void add_history_routes(Router& router, const ServiceParts& parts);
void add_job_routes(Router& router, const ServiceParts& parts);
void add_log_routes(Router& router, const ServiceParts& parts);
void add_info_routes(Router& router, const ServiceParts& parts);
void add_backup_routes(Router& router, const ServiceParts& parts);
void add_user_routes(Router& router, const ServiceParts& parts);
void add_v1_submit_routes(Router& router, const ServiceParts& parts);
void add_v1_job_routes(Router& router, const ServiceParts& parts);
void add_v1_device_routes(Router& router, const ServiceParts& parts);
// Whether it may have to wait for a device that loads.
bool loads_models(const HttpRequest& head);
void add_v1_model_routes(Router& router, const ServiceParts& parts);
void add_session_routes(Router& router, const ServiceParts& parts);
void add_page_routes(Router& router, const ServiceParts& parts);
void add_v1_event_routes(Router& router, const ServiceParts& parts);
void add_v1_trace_routes(Router& router, const ServiceParts& parts);
void add_metrics_routes(Router& router, const ServiceParts& parts);
// The last ones: what nobody else answers is a file of the front end.
void add_file_routes(Router& router, const ServiceParts& parts);

}  // namespace heddle::engine
