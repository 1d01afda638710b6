// What has ended: /history.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "engine/serve/authorization.h"
#include "engine/serve/service.h"

namespace heddle::engine {
namespace {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

Json parsed_text(const std::string& text, Json otherwise) {
  return text.empty() ? std::move(otherwise) : parse_json(text, "job");
}

// Of a job that ended without a word, because the process did.
Json lost_status() {
  Json status = Json::object();
  status.set("status_str", "error").set("completed", false);
  return std::move(status.set("messages", Json::array()));
}

Json entry_of(const Job& job) {
  Json prompt = Json::array(), entry = Json::object();
  prompt.push(job.number).push(job.id).push(parsed_text(job.prompt, Json::object()));
  prompt.push(parsed_text(job.extra_data, Json::object()))
      .push(parsed_text(job.targets, Json::array()));
  const Json told = parsed_text(job.status, Json::object());
  const Json *status = told.find("status"), *meta = told.find("meta");
  entry.set("prompt", std::move(prompt)).set("outputs", parsed_text(job.outputs, Json::object()));
  entry.set("status", status == nullptr ? lost_status() : *status);
  return std::move(entry.set("meta", meta == nullptr ? Json::object() : *meta));
}

std::optional<std::int64_t> number_of(const Query& query, std::string_view name) {
  const std::string* text = query.find(name);
  if (text == nullptr) return {};
  std::int64_t number = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), number);
  if (read.ec != std::errc() || read.ptr != text->data() + text->size())
    throw Refused{text_response("400: a number is expected", 400)};
  return number;
}

// The same of one user's: what is not theirs is not read.
std::vector<Job> history_of(const std::string& user, const JobQueue& queue, std::int64_t most,
                            std::int64_t offset, bool last) {
  JobSearch search;
  search.states = {JobState::done, JobState::failed, JobState::cancelled};
  search.user = user;
  search.limit = kAll;
  std::vector<Job> jobs = queue.search(search);  // youngest first
  std::erase_if(jobs, [](const Job& job) { return job.started_ms == 0; });
  std::ranges::sort(jobs, {}, [](const Job& job) { return std::pair(job.ended_ms, job.sequence); });
  const auto count = static_cast<std::int64_t>(jobs.size());
  const std::int64_t begin = last ? std::max<std::int64_t>(0, count - most) : offset;
  std::vector<Job> whole;
  for (std::int64_t i = begin; i < count && i - begin < most; ++i)
    if (std::optional<Job> job = queue.find(jobs[std::size_t(i)].id)) whole.push_back(*job);
  return whole;
}

std::vector<Job> history_for(const Caller& caller, const JobQueue& queue, std::int64_t most,
                             std::int64_t offset, bool last) {
  return caller.is_admin ? queue.history(most, offset, last, true)
                         : history_of(caller.user, queue, most, offset, last);
}

HttpResponse list_history(const Call& call, const JobQueue& queue) {
  const auto most = number_of(call.query, "max_items"), offset = number_of(call.query, "offset");
  const bool is_from_start = offset && *offset >= 0;
  Json entries = Json::object();
  for (const Job& job : history_for(call.request.caller, queue, most && *most >= 0 ? *most : kAll,
                                    is_from_start ? *offset : 0, most && !is_from_start))
    entries.set(job.id, entry_of(job));
  return json_response(entries);
}

void clear_history(const Caller& caller, JobQueue& queue) {
  if (caller.is_admin) {
    queue.prune(0);
    return;
  }
  JobSearch search;
  search.states = {JobState::done, JobState::failed, JobState::cancelled};
  search.user = caller.user;
  search.limit = kAll;
  std::vector<std::string> ids;
  for (const Job& job : queue.search(search)) ids.push_back(job.id);
  if (!ids.empty()) queue.forget(ids);
}

HttpResponse change_history(const Call& call, JobQueue& queue) {
  Json body;
  try {
    body = parse_json(call.request.body, "body");
  } catch (const Error&) {
    throw Refused{text_response("400: the body is no JSON object", 400)};
  }
  if (const Json* clear = body.find("clear");
      clear != nullptr && clear->is_bool() && clear->as_bool())
    clear_history(call.request.caller, queue);
  std::vector<std::string> ids;
  if (const Json* list = body.find("delete"); list != nullptr && list->is_array())
    for (const Json& id : list->as_array())
      if (id.is_string()) ids.push_back(id.as_string());
  ids = visible_ids(call.request.caller, std::move(ids), queue);
  if (!ids.empty()) queue.forget(ids);
  return {};
}

}  // namespace

void add_history_routes(Router& router, const ServiceParts& parts) {
  JobQueue& queue = parts.queue;
  router.add_twice("GET", "/history",
                   [&queue](const Call& call) { return list_history(call, queue); });
  router.add_twice("POST", "/history",
                   [&queue](const Call& call) { return change_history(call, queue); });
  router.add_twice("GET", "/history/{id}", [&queue](const Call& call) {
    Json entries = Json::object();
    const std::optional<Job> job = queue.find(call.part("id"));
    const bool is_shown = job && call.request.caller.may_see(job->user);
    if (is_shown && has_ended(job->state) && job->started_ms > 0)
      entries.set(job->id, entry_of(*job));
    return json_response(entries);
  });
}

}  // namespace heddle::engine
