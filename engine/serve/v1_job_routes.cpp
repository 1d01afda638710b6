// Jobs are looked at and changed: /v1/jobs, /v1/queue and /v1/cancel.
#include <algorithm>
#include <limits>

#include "engine/base/text.h"
#include "engine/serve/authorization.h"
#include "engine/serve/preview_image.h"
#include "engine/serve/service.h"
#include "engine/serve/v1.h"
#include "engine/serve/v1_job.h"

namespace heddle::engine {
namespace {

constexpr JobState kStates[] = {JobState::pending, JobState::running, JobState::paused,
                                JobState::done,    JobState::failed,  JobState::cancelled};
constexpr std::int64_t kMostOfAPage = 1000;
constexpr std::int64_t kMostOfAllPages = std::numeric_limits<std::int64_t>::max();

JobState state_named(const std::string& name) {
  const auto found = std::ranges::find(kStates, name, job_state_name);
  if (found == std::end(kStates))
    refuse_v1(400, "invalid_argument",
              cat("there is no state ", quote(name),
                  ". The states are pending, running, paused, done, failed and cancelled."),
              Json(Json::object().set("where", "state")));
  return *found;
}

HttpResponse list_jobs(const Call& call, const ServiceParts& parts) {
  JobSearch search;
  for (const std::string& name : list_in(call.query, "state"))
    search.states.push_back(state_named(name));
  search.tag = call.query.get("tag");
  search.batch = call.query.get("batch");
  search.user = call.query.get("user");
  if (const Caller& caller = call.request.caller; !caller.is_admin) {
    if (!search.user.empty() && search.user != caller.user)
      require_admin(caller, "what other users have submitted");
    search.user = caller.user;
  }
  search.before =
      whole_number(call.query, "before", 1, std::numeric_limits<std::int64_t>::max(), 0);
  search.limit = whole_number(call.query, "limit", 1, kMostOfAPage, 100) + 1;
  std::vector<Job> jobs = parts.queue.search(search);
  const bool has_more = std::int64_t(jobs.size()) == search.limit;
  if (has_more) jobs.pop_back();
  Json answer = Json::object();
  answer.set("jobs", JobTeller(parts).tell(jobs)).set("total", parts.queue.count_of(search));
  return json_response(answer.set("next", has_more ? Json(jobs.back().sequence) : Json()));
}

Job require_job(const ServiceParts& parts, const std::string& id) {
  std::optional<Job> job = parts.queue.find(id);
  if (!job) refuse_v1(404, "not_found", cat("there is no job ", quote(id)));
  return *std::move(job);
}

HttpResponse told(const ServiceParts& parts, const Job& job, unsigned status = 200) {
  return json_response(JobTeller(parts).tell_whole(job), status);
}

HttpResponse told(const ServiceParts& parts, const std::string& id) {
  return told(parts, require_job(parts, id));
}

// `wanted`: "be paused".
[[noreturn]] void refuse_state(const ServiceParts& parts, const std::string& id,
                               std::string_view wanted) {
  const Job job = require_job(parts, id);
  const std::string_view state = job_state_name(job.state);
  refuse_v1(409, "wrong_state", cat("job ", quote(id), " is ", state, ": it cannot ", wanted),
            Json(Json::object().set("state", state)));
}

HttpResponse cancel_job(const Call& call, const ServiceParts& parts) {
  const Fields none(call, {});
  const std::string& id = call.part("id");
  const JobQueue::Cancelled cancelled = parts.queue.cancel({.ids = {id}});
  parts.runner.stop(cancelled.running);
  if (cancelled.ended.empty() && cancelled.running.empty()) refuse_state(parts, id, "be cancelled");
  return told(parts, require_job(parts, id), cancelled.running.empty() ? 200 : 202);
}

HttpResponse pause_job(const Call& call, const ServiceParts& parts) {
  const Fields fields(call, {"release"});
  const std::string& id = call.part("id");
  if (!parts.queue.pause(id) && !parts.runner.pause(id, fields.flag("release")))
    refuse_state(parts, id, "be paused");
  return told(parts, id);
}

HttpResponse resume_job(const Call& call, const ServiceParts& parts) {
  const Fields none(call, {});
  const std::string& id = call.part("id");
  if (!parts.queue.resume(id) && !parts.runner.resume(id))
    refuse_state(parts, id, "be resumed, as it is not paused");
  return told(parts, id);
}

HttpResponse retry_job(const Call& call, const ServiceParts& parts) {
  const Fields fields(call, {"from_start"});
  const std::string& id = call.part("id");
  if (!has_ended(require_job(parts, id).state))
    refuse_state(parts, id, "be tried again before it has ended");
  // Whoever gave it a place before others need not have been the one who asks.
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Job made = parts.queue.retry(id, {}, call.request.caller.is_admin ? kMost : 0,
                                     fields.flag("from_start"));
  return told(parts, made, 201).set("Location", cat("/v1/jobs/", percent_encoded(made.id)));
}

HttpResponse move_job(const Call& call, const ServiceParts& parts) {
  const Fields fields(call, {"before", "to", "priority"});
  const std::string &id = call.part("id"), before = fields.text("before"), to = fields.text("to");
  const std::optional<std::int64_t> priority = fields.integer("priority", -1'000'000, 1'000'000);
  if (int(!before.empty()) + int(!to.empty()) + int(priority.has_value()) != 1 ||
      (!to.empty() && to != "front" && to != "back"))
    refuse_v1(400, "invalid_argument",
              "say where to: {\"before\": ID}, {\"to\": \"front\"}, {\"to\": \"back\"} or "
              "{\"priority\": NUMBER}");
  // Whoever moves a job to the front of a line passes others.
  const Caller& caller = call.request.caller;
  if (to != "back") require_admin(caller, "a move towards the front");
  bool is_moved = false;
  if (!before.empty()) {
    if (parts.queue.find(id)) require_job(parts, before);
    is_moved = parts.queue.move_before(id, before);
  } else if (priority) {
    is_moved = parts.queue.set_priority(id, *priority);
  } else {
    is_moved = to == "front" ? parts.queue.move_to_front(id) : parts.queue.move_to_back(id);
  }
  if (!is_moved) refuse_state(parts, id, "be moved there: both have to wait");
  return told(parts, id);
}

HttpResponse delete_job(const Call& call, const ServiceParts& parts) {
  const std::string& id = call.part("id");
  if (parts.queue.forget({id}) == 0)
    refuse_state(parts, id, "be deleted before it has ended. Cancel it first");
  return {204, {}, "", {}};
}

HttpResponse show_preview(const Call& call, const ServiceParts& parts) {
  const std::string& id = call.part("id");
  const std::optional<RgbPicture> picture = parts.runner.preview(id);
  if (!picture)
    refuse_v1(404, "not_found",
              cat("job ", quote(id),
                  " has no preview: either it does not run, "
                  "or no node has made one yet"));
  HttpResponse response;
  response.body =
      preview_jpeg(picture->pixels.data(), picture->width, picture->height, kPreviewSide);
  if (response.body.empty())
    refuse_v1(422, "unsupported", "heddle was built without libjpeg: it makes no previews");
  response.set("Content-Type", "image/jpeg").set("Cache-Control", "no-store");
  return response;
}

HttpResponse show_queue(const Call& call, const ServiceParts& parts) {
  const std::int64_t limit = whole_number(call.query, "limit", 0, kMostOfAPage, 100);
  const JobTeller teller(parts);
  Json waiting = Json::array(), counts = Json::object(), answer = Json::object();
  std::int64_t position = 0;
  const Caller& caller = call.request.caller;
  // Places are told as they are, with the jobs of others between them.
  for (const Job& job : parts.queue.waiting(caller.is_admin ? limit : kMostOfAllPages)) {
    const bool is_pending = job.state == JobState::pending;
    const auto place = is_pending ? std::optional(position++) : std::nullopt;
    if (caller.may_see(job.user) && std::int64_t(waiting.size()) < limit)
      waiting.push(teller.tell(job, place));
  }
  const JobCounts jobs = parts.queue.counts();
  counts.set("pending", jobs.pending).set("running", jobs.running);
  counts.set("paused", jobs.paused).set("ended", jobs.ended);
  answer.set("is_paused", parts.queue.is_paused()).set("workers", parts.runner.jobs());
  answer.set("counts", std::move(counts));
  answer.set("running", teller.tell(visible(caller, parts.queue.list(JobState::running))));
  return json_response(answer.set("waiting", std::move(waiting)));
}

HttpResponse pause_queue(const Call& call, const ServiceParts& parts, bool paused) {
  const Fields none(call, {});
  parts.queue.pause_all(paused);
  return json_response(Json(Json::object().set("is_paused", paused)));
}

HttpResponse cancel_jobs(const Call& call, const ServiceParts& parts) {
  const Fields fields(call, {"ids", "batch", "tag", "user", "all", "but_running"});
  JobSelection selection;
  selection.ids = fields.texts("ids");
  selection.batch = fields.text("batch");
  selection.tag = fields.text("tag");
  selection.user = fields.text("user");
  selection.all = fields.flag("all");
  selection.but_running = fields.flag("but_running");
  const bool says_which = selection.all || fields.find("ids") != nullptr ||
                          !selection.batch.empty() || !selection.tag.empty() ||
                          !selection.user.empty();
  if (!says_which)
    refuse_v1(400, "invalid_argument",
              "say which jobs: 'ids', 'batch', 'tag' or 'user', or 'all': true");
  JobQueue::Cancelled cancelled;
  if (fields.find("ids") == nullptr || !selection.ids.empty())
    cancelled = parts.queue.cancel(selection_for(call.request.caller, selection));
  parts.runner.stop(cancelled.running);
  Json running = Json::array(), answer = Json::object();
  for (const JobClaim& claim : cancelled.running) running.push(claim.id);
  answer.set("cancelled", json_list(cancelled.ended));
  return json_response(answer.set("cancelling", std::move(running)));
}

}  // namespace

void add_v1_job_routes(Router& router, const ServiceParts& parts) {
  add_v1(router, "GET", "/v1/jobs", [parts](const Call& call) { return list_jobs(call, parts); });
  add_v1(router, "GET", "/v1/jobs/{id}",
         [parts](const Call& call) { return told(parts, call.part("id")); });
  add_v1(router, "GET", "/v1/jobs/{id}/preview",
         [parts](const Call& call) { return show_preview(call, parts); });
  add_v1(router, "DELETE", "/v1/jobs/{id}",
         [parts](const Call& call) { return delete_job(call, parts); });
  add_v1(router, "POST", "/v1/jobs/{id}/cancel",
         [parts](const Call& call) { return cancel_job(call, parts); });
  add_v1(router, "POST", "/v1/jobs/{id}/pause",
         [parts](const Call& call) { return pause_job(call, parts); });
  add_v1(router, "POST", "/v1/jobs/{id}/resume",
         [parts](const Call& call) { return resume_job(call, parts); });
  add_v1(router, "POST", "/v1/jobs/{id}/retry",
         [parts](const Call& call) { return retry_job(call, parts); });
  add_v1(router, "POST", "/v1/jobs/{id}/move",
         [parts](const Call& call) { return move_job(call, parts); });
  add_v1(router, "GET", "/v1/queue", [parts](const Call& call) { return show_queue(call, parts); });
  add_v1(router, "POST", "/v1/queue/pause",
         [parts](const Call& call) { return pause_queue(call, parts, true); });
  add_v1(router, "POST", "/v1/queue/resume",
         [parts](const Call& call) { return pause_queue(call, parts, false); });
  add_v1(router, "POST", "/v1/cancel",
         [parts](const Call& call) { return cancel_jobs(call, parts); });
}

}  // namespace heddle::engine
