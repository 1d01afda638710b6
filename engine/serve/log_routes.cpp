// The log, for people at a front end: /internal/logs.
#include <mutex>
#include <set>

#include "engine/serve/log_lines.h"
#include "engine/serve/service.h"

namespace heddle::engine {
namespace {

Json told_of(const LogLine& line) {
  Json entry = Json::object();
  return std::move(entry.set("t", line.time).set("m", line.text));
}

// Clients that want every line.
class Listeners {
 public:
  void set(const std::string& client, bool enabled) {
    const std::lock_guard lock(mutex_);
    if (enabled)
      clients_.insert(client);
    else
      clients_.erase(client);
  }
  void tell(Clients& clients, const LogLine& line) const {
    Json entries = Json::array(), data = Json::object(), message = Json::object();
    data.set("entries", std::move(entries.push(told_of(line)))).set("size", Json());
    message.set("type", "logs").set("data", std::move(data));
    const std::lock_guard lock(mutex_);
    for (const std::string& client : clients_) clients.send({client, ""}, message);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> clients_;  // mutex_
};

HttpResponse subscribe(const Call& call, Listeners& listeners) {
  try {
    const Json body = parse_json(call.request.body, "body");
    listeners.set(body.at("clientId").as_string(), body.at("enabled").as_bool());
  } catch (const Error&) {
    throw Refused{text_response("400: clientId and enabled are expected", 400)};
  }
  return {};
}

}  // namespace

void add_log_routes(Router& router, const ServiceParts& parts) {
  const std::shared_ptr<LogLines> log = parts.options.log;
  if (log == nullptr) return;
  const auto listeners = std::make_shared<Listeners>();
  log->listen([listeners, &clients = parts.clients](const LogLine& line) {
    listeners->tell(clients, line);
  });
  router.add("GET", "/internal/logs", [log](const Call&) {
    std::string text;
    for (const LogLine& line : log->lines()) text += line.time + " - " + line.text;
    return json_response(Json(text));
  });
  router.add("GET", "/internal/logs/raw", [log](const Call&) {
    Json entries = Json::array(), size = Json::object(), answer = Json::object();
    for (const LogLine& line : log->lines()) entries.push(told_of(line));
    size.set("cols", 80).set("rows", 24);
    answer.set("entries", std::move(entries));
    return json_response(answer.set("size", std::move(size)));
  });
  router.add("PATCH", "/internal/logs/subscribe",
             [listeners](const Call& call) { return subscribe(call, *listeners); });
}

}  // namespace heddle::engine
