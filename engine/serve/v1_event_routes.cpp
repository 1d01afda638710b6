// GET /v1/events and GET /v1/jobs/{id}/events.
#include <limits>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/serve/event_log.h"
#include "engine/serve/service.h"
#include "engine/serve/v1.h"

namespace heddle::engine {
namespace {

// What a browser's EventSource sends when it comes back counts before what its URL says.
std::optional<std::uint64_t> after_of(const Call& call) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (const std::string* last = call.request.header("Last-Event-ID"); last != nullptr)
    return whole_number(Query(cat("Last-Event-ID=", *last)), "Last-Event-ID", 0, kMost, 0);
  if (call.query.find("after") == nullptr) return {};
  return whole_number(call.query, "after", 0, kMost, 0);
}

HttpResponse stream_of(std::function<void(const std::shared_ptr<HttpStream>&)> begin,
                       std::function<void()> gone = {}) {
  HttpResponse response;
  response.set("Content-Type", "text/event-stream; charset=utf-8");
  response.set("Cache-Control", "no-store").set("X-Accel-Buffering", "no");
  response.stream = StreamedBody{
      std::move(begin), ": \n\n",
      "event: too_slow\ndata: {\"message\":\"too many events wait for this reader: come back with "
      "Last-Event-ID\"}\n\n",
      std::move(gone)};
  return response;
}

// Each holds a connection, which others want, too.
void require_room(const ServiceParts& parts) {
  if (parts.events.readers() < parts.options.event_readers) return;
  HttpResponse refusal =
      v1_error(503, "too_many_readers",
               cat("events are followed by ", parts.options.event_readers, " readers already"));
  throw Refused{std::move(refusal.set("Retry-After", "10"))};
}

// What happens to the job when the connection ends before it: for requests whose result nobody
// wants then. Nothing: the job goes on.
std::function<void()> policy_of(const Call& call, const ServiceParts& parts,
                                const std::string& id) {
  const std::string policy = call.query.get("on_disconnect");
  if (policy.empty() || policy == "continue") return {};
  if (policy != "cancel")
    refuse_v1(
        400, "invalid_argument",
        cat("on_disconnect: expected cancel or continue, got ", quote(printable(policy)), "."),
        Json(Json::object().set("where", "on_disconnect")));
  return [parts, id] {
    log(Level::info, cat("job ", printable(id), " is cancelled: who follows it has gone"));
    parts.runner.stop(parts.queue.cancel({.ids = {id}}).running);
  };
}

HttpResponse events_of_job(const Call& call, const ServiceParts& parts) {
  const std::string id = call.part("id");
  if (!parts.queue.find_brief(id)) refuse_v1(404, "not_found", cat("there is no job ", quote(id)));
  require_room(parts);
  const auto begin = [parts, id, after = after_of(call).value_or(0),
                      caller = call.request.caller](const std::shared_ptr<HttpStream>& stream) {
    parts.events.follow(stream, after, id, caller);
    // It may have ended before it was followed.
    const std::optional<Job> job = parts.queue.find_brief(id);
    if (!job || has_ended(job->state)) parts.events.close(stream, id, told_state(id, job));
  };
  return stream_of(begin, policy_of(call, parts, id));
}

}  // namespace

void add_v1_event_routes(Router& router, const ServiceParts& parts) {
  add_v1(router, "GET", "/v1/events", [parts](const Call& call) {
    require_room(parts);
    return stream_of([parts, after = after_of(call),
                      caller = call.request.caller](const std::shared_ptr<HttpStream>& stream) {
      parts.events.follow(stream, after, "", caller);
    });
  });
  add_v1(router, "GET", "/v1/jobs/{id}/events",
         [parts](const Call& call) { return events_of_job(call, parts); });
}

}  // namespace heddle::engine
