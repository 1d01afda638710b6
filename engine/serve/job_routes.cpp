// Jobs that wait, run and have ended in one list, for the panels of newer front ends: /api/jobs.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>

#include "engine/base/text.h"
#include "engine/serve/authorization.h"
#include "engine/serve/service.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kStatuses[] = {"pending", "in_progress", "completed", "failed",
                                          "cancelled"};

[[noreturn]] void refuse_query(std::string_view what) {
  Json error = Json::object();
  throw Refused{json_response(error.set("error", what), 400)};
}

std::string_view status_of(const Job& job) {
  switch (job.state) {
    case JobState::running:
      return "in_progress";
    case JobState::done:
      return "completed";
    case JobState::failed:
      return "failed";
    case JobState::cancelled:
      return "cancelled";
    default:
      return "pending";
  }
}

Json read_text(const std::string& text) {
  return text.empty() ? Json::object() : parse_json(text, "job");
}

std::string item_text(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

bool can_be_shown(std::string_view media, const Json& item) {
  if (media == "images" || media == "video" || media == "audio") return true;
  const std::string format = item_text(item, "format"), name = item_text(item, "filename");
  if (format.starts_with("video/") || format.starts_with("audio/")) return true;
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{".obj", ".fbx", ".gltf", ".glb"},
      [&](std::string_view end) { return name.ends_with(end); });
}

// How many files there are, and the one to show: of the output folder where there is one.
struct Outputs {
  std::int64_t count = 0;
  Json shown;  // null: none
};

Outputs outputs_of(const Json& outputs) {
  Outputs found;
  bool is_output = false;
  for (const Json::Member& node : outputs.members()) {
    if (!node.value.is_object()) continue;
    for (const Json::Member& media : node.value.members()) {
      if (media.key == "animated" || !media.value.is_array()) continue;
      for (const Json& item : media.value.as_array()) {
        if (!item.is_object()) continue;
        ++found.count;
        const bool is_better =
            found.shown.is_null() || (!is_output && item_text(item, "type") == "output");
        if (!is_better || is_output || !can_be_shown(media.key, item)) continue;
        is_output = item_text(item, "type") == "output";
        found.shown = item;
        found.shown.set("nodeId", node.key).set("mediaType", media.key);
      }
    }
  }
  return found;
}

std::string workflow_of_job(const Json& extra) {
  const Json* info = extra.find("extra_pnginfo");
  const Json* workflow = info == nullptr ? nullptr : info->find("workflow");
  return workflow == nullptr ? "" : item_text(*workflow, "id");
}

// Of the messages in the history.
const Json* error_of(const Json& told) {
  const Json* status = told.find("status");
  const Json* messages = status == nullptr ? nullptr : status->find("messages");
  if (messages == nullptr || !messages->is_array()) return nullptr;
  for (const Json& message : messages->as_array())
    if (message.size() == 2 && message.at(std::size_t{0}) == Json("execution_error"))
      return &message.at(1);
  return nullptr;
}

Json told_of_job(const Job& job) {
  const Json told = read_text(job.status), extra = read_text(job.extra_data);
  const Outputs outputs = outputs_of(read_text(job.outputs));
  Json one = Json::object();
  one.set("id", job.id).set("status", status_of(job)).set("priority", job.number);
  one.set("create_time", job.created_ms);
  if (job.started_ms > 0) one.set("execution_start_time", job.started_ms);
  if (job.ended_ms > 0) one.set("execution_end_time", job.ended_ms);
  if (const Json* error = error_of(told)) one.set("execution_error", *error);
  one.set("outputs_count", outputs.count);
  if (!outputs.shown.is_null()) one.set("preview_output", outputs.shown);
  if (const std::string id = workflow_of_job(extra); !id.empty()) one.set("workflow_id", id);
  return one;
}

std::optional<std::int64_t> whole_number_in(const Query& query, std::string_view name) {
  const std::string* text = query.find(name);
  if (text == nullptr) return {};
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) refuse_query(cat(name, " must be an integer"));
  return number;
}

std::string one_of(const Query& query, std::string_view name,
                   std::initializer_list<std::string_view> choices) {
  const std::string value = query.get(name, *choices.begin());
  if (std::ranges::find(choices, value) == choices.end())
    refuse_query(cat(name, " must be one of: ", join(choices, ", ")));
  return value;
}

std::vector<std::string> statuses_in(const Query& query) {
  std::vector<std::string> wanted;
  const std::string text = query.get("status");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    wanted.push_back(text.substr(at, end - at));
    if (std::ranges::find(kStatuses, wanted.back()) == std::end(kStatuses))
      refuse_query(cat("status must be of: ", join(kStatuses, ", ")));
    at = end + 1;
  }
  return wanted;
}

std::vector<Job> all_jobs(const JobQueue& queue) {
  std::vector<Job> all;
  for (std::vector<Job> some :
       {queue.list(JobState::pending), queue.list(JobState::paused), queue.list(JobState::running),
        queue.history(std::numeric_limits<std::int64_t>::max(), 0, false, true)})
    std::ranges::move(some, std::back_inserter(all));
  return all;
}

HttpResponse list_jobs(const Call& call, const JobQueue& queue) {
  const std::vector<std::string> statuses = statuses_in(call.query);
  const std::string by = one_of(call.query, "sort_by", {"created_at", "execution_duration"});
  const std::string order = one_of(call.query, "sort_order", {"desc", "asc"});
  const auto limit = whole_number_in(call.query, "limit");
  if (limit && *limit <= 0) refuse_query("limit must be positive");
  const auto offset = std::max<std::int64_t>(0, whole_number_in(call.query, "offset").value_or(0));
  const std::string* workflow = call.query.find("workflow_id");
  std::vector<Job> jobs = visible(call.request.caller, all_jobs(queue));
  std::erase_if(jobs, [&](const Job& job) {
    if (workflow != nullptr && workflow_of_job(read_text(job.extra_data)) != *workflow) return true;
    return !statuses.empty() && std::ranges::find(statuses, status_of(job)) == statuses.end();
  });
  const auto key = [&](const Job& job) {
    const std::int64_t time = by == "created_at"  ? job.created_ms
                              : job.ended_ms == 0 ? 0
                                                  : job.ended_ms - job.started_ms;
    return std::pair(time, job.sequence);
  };
  std::ranges::sort(jobs, {}, key);
  if (order == "desc") std::ranges::reverse(jobs);
  const auto total = static_cast<std::int64_t>(jobs.size());
  const std::int64_t end = limit && *limit < total - offset ? offset + *limit : total;
  Json told = Json::array(), page = Json::object(), answer = Json::object();
  for (std::int64_t i = offset; i < end; ++i) told.push(told_of_job(jobs[std::size_t(i)]));
  page.set("offset", offset).set("limit", limit ? Json(*limit) : Json()).set("total", total);
  page.set("has_more", end < total);
  return json_response(answer.set("jobs", std::move(told)).set("pagination", std::move(page)));
}

HttpResponse one_job(const Call& call, const JobQueue& queue) {
  const std::optional<Job> job = queue.find(call.part("id"));
  const bool is_shown = job && call.request.caller.may_see(job->user);
  if (!is_shown || (has_ended(job->state) && job->started_ms == 0)) {
    Json error = Json::object();
    throw Refused{json_response(error.set("error", "Job not found"), 404)};
  }
  Json one = told_of_job(*job), workflow = Json::object();
  if (has_ended(job->state)) {
    one.set("outputs", read_text(job->outputs));
    const Json told = read_text(job->status);
    if (const Json* status = told.find("status")) one.set("execution_status", *status);
  }
  workflow.set("prompt", read_text(job->prompt)).set("extra_data", read_text(job->extra_data));
  return json_response(one.set("workflow", std::move(workflow)));
}

HttpResponse cancel_jobs(const Call& call, const ServiceParts& parts,
                         std::vector<std::string> ids) {
  JobQueue::Cancelled cancelled;
  if (!ids.empty())
    cancelled = parts.queue.cancel(selection_for(call.request.caller, {.ids = std::move(ids)}));
  parts.runner.stop(cancelled.running);
  Json answer = Json::object();
  return json_response(
      answer.set("cancelled", !cancelled.ended.empty() || !cancelled.running.empty()));
}

std::vector<std::string> ids_of_body(const Call& call) {
  std::vector<std::string> ids;
  try {
    const Json body = parse_json(call.request.body, "body");
    for (const Json& id : body.at("job_ids").as_array()) ids.push_back(id.as_string());
  } catch (const Error&) {
    refuse_query("job_ids must be a list of ids");
  }
  return ids;
}

}  // namespace

void add_job_routes(Router& router, const ServiceParts& parts) {
  const JobQueue& queue = parts.queue;
  router.add_twice("GET", "/api/jobs",
                   [&queue](const Call& call) { return list_jobs(call, queue); });
  router.add_twice("POST", "/api/jobs/cancel", [parts](const Call& call) {
    return cancel_jobs(call, parts, ids_of_body(call));
  });
  router.add_twice("GET", "/api/jobs/{id}",
                   [&queue](const Call& call) { return one_job(call, queue); });
  router.add_twice("POST", "/api/jobs/{id}/cancel", [parts](const Call& call) {
    return cancel_jobs(call, parts, {call.part("id")});
  });
}

}  // namespace heddle::engine
