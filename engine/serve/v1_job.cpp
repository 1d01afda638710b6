#include "engine/serve/v1_job.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "engine/base/text.h"
#include "engine/serve/v1.h"

namespace heddle::engine {
namespace {

Json read_text(const std::string& text) {
  return text.empty() ? Json::object() : parse_json(text, "job");
}

Json time_or_null(std::int64_t ms) { return ms == 0 ? Json() : Json(ms); }

std::string text_in(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

std::string view_url(const Json& file) {
  return cat("/view?filename=", percent_encoded(text_in(file, "filename")),
             "&subfolder=", percent_encoded(text_in(file, "subfolder")),
             "&type=", percent_encoded(text_in(file, "type")));
}

// A file by its URL, anything else by its value.
Json output_of(const std::string& node, const std::string& kind, const Json& item) {
  Json output = Json::object();
  output.set("node", node).set("kind", kind);
  if (item.find("filename") == nullptr) return std::move(output.set("value", item));
  for (const char* key : {"filename", "subfolder", "type"}) output.set(key, text_in(item, key));
  return std::move(output.set("url", view_url(item)));
}

Json outputs_of(const Job& job) {
  Json list = Json::array();
  const Json outputs = read_text(job.outputs);
  for (const Json::Member& node : outputs.members()) {
    if (!node.value.is_object()) continue;
    for (const Json::Member& kind : node.value.members())
      if (kind.key != "animated" && kind.value.is_array())  // that one tells about the others
        for (const Json& item : kind.value.as_array())
          list.push(output_of(node.key, kind.key, item));
  }
  return list;
}

Json error_of(const Job& job) {
  if (job.state != JobState::failed) return {};
  const Json told = read_text(job.status);
  Json error = Json::object();
  const Json* given = told.find("error");
  if (given == nullptr)
    return std::move(error.set("code", "internal")
                         .set("message", "the server ended while the job ran")
                         .set("node", Json())
                         .set("class_type", Json())
                         .set("trail", Json::array()));
  error.set("code", v1_code(int(given->at("code").as_int64())))
      .set("message", given->at("message"));
  for (const char* key : {"node", "class_type"}) error.set(key, text_or_null(text_in(*given, key)));
  return std::move(error.set("trail", given->at("trail")));
}

// "40 s", "12 min", "3 h 20 min".
std::string about(double seconds) {
  const auto s = std::int64_t(std::ceil(seconds));
  if (s < 60) return cat(s, " s");
  const std::int64_t minutes = (s + 59) / 60;
  if (minutes < 60) return cat(minutes, " min");
  return cat(minutes / 60, " h ", minutes % 60, " min");
}

Json reason(std::string_view code, std::string_view message, std::optional<double> wait = {}) {
  Json why = Json::object();
  why.set("reason", code);
  why.set("message",
          wait ? cat(message, "; begins in about ", about(*wait)) : std::string(message));
  return std::move(why.set("expected_seconds", wait ? Json(*wait) : Json()));
}

}  // namespace

JobTeller::JobTeller(const ServiceParts& parts)
    : parts_(parts), running_(parts.runner.snapshots()), is_paused_(parts.queue.is_paused()) {}

Json JobTeller::waiting_of(const Job& job, std::optional<std::int64_t> position) const {
  if (job.state == JobState::paused) return reason("paused", "the job is paused");
  if (job.state == JobState::running) {
    const auto run = running_.find(job.id);
    if (run == running_.end()) return {};
    if (run->second.gives_way) return reason("background", "it gives way to interactive jobs");
    if (run->second.waits_for.empty()) return {};
    Json why = reason("memory", run->second.waits_why);
    return std::move(
        why.set("device", run->second.waits_for).set("bytes", run->second.waits_bytes));
  }
  if (job.state != JobState::pending) return {};
  if (is_paused_) return reason("queue_paused", "the queue is paused");
  if (position.value_or(0) > 0)
    return reason("behind_others", cat("jobs that run before it: ", *position), expected_wait(job));
  return reason("workers",
                cat("jobs that run at a time: ", parts_.runner.jobs(), "; it is the next one"),
                expected_wait(job));
}

std::optional<double> JobTeller::expected_wait(const Job& job) const {
  if (!waits_) waits_ = parts_.queue.expected_waits(parts_.runner.jobs());
  const auto found = waits_->find(job.id);
  return found == waits_->end() ? std::nullopt : std::optional(found->second);
}

std::string JobTeller::state_of_run(const Job& job) const {
  const auto run = running_.find(job.id);
  if (run == running_.end()) return "starting";
  if (run->second.is_paused) return "paused";
  if (run->second.gives_way) return "waiting";
  return run->second.waits_for.empty() ? "running" : "waiting";
}

Json JobTeller::progress_of(const Job& job) const {
  if (job.state != JobState::running) return {};
  const auto run = running_.find(job.id);
  const RunSnapshot now = run == running_.end() ? RunSnapshot{} : run->second;
  Json progress = Json::object(), nodes = Json::array();
  for (const NodeProgress& node : now.nodes) {
    Json told = Json::object();
    told.set("id", node.id).set("class_type", node.class_type);
    nodes.push(
        std::move(told.set("device", text_or_null(node.device)).set("fraction", node.fraction)));
  }
  progress.set("state", state_of_run(job)).set("devices", json_list(now.devices));
  progress.set("nodes_done", now.nodes_done);
  progress.set("preview", now.previews == 0 ? Json()
                                            : Json(cat("/v1/jobs/", percent_encoded(job.id),
                                                       "/preview?number=", now.previews)));
  return std::move(progress.set("nodes", std::move(nodes)));
}

Json JobTeller::tell(const Job& job, std::optional<std::int64_t> position) const {
  Json told = Json::object();
  told.set("id", job.id).set("state", job_state_name(job.state)).set("sequence", job.sequence);
  told.set("priority", job.priority).set("number", job.number);
  told.set("background", job.is_background);
  told.set("user", text_or_null(job.user)).set("tag", text_or_null(job.tag));
  told.set("batch", text_or_null(job.batch)).set("client", text_or_null(job.client));
  told.set("retry_of", text_or_null(job.retry_of)).set("attempts", job.generation);
  told.set("from_start", job.from_start);
  told.set("is_cancel_wanted", job.is_cancel_wanted && job.state == JobState::running);
  told.set("created_ms", job.created_ms).set("started_ms", time_or_null(job.started_ms));
  told.set("ended_ms", time_or_null(job.ended_ms));
  told.set("position", position ? Json(*position) : Json());
  told.set("waiting", waiting_of(job, position)).set("progress", progress_of(job));
  told.set("outputs", outputs_of(job)).set("error", error_of(job));
  return told;
}

Json JobTeller::tell_whole(const Job& job) const {
  Json told = tell(job, parts_.queue.position(job.id)), workflow = Json::object();
  workflow.set("prompt", read_text(job.prompt)).set("extra_data", read_text(job.extra_data));
  workflow.set("targets", job.targets.empty() ? Json::array() : parse_json(job.targets, "job"));
  return std::move(told.set("workflow", std::move(workflow)));
}

// The order is asked for once: each place takes a look at all that wait.
Json JobTeller::tell(const std::vector<Job>& jobs) const {
  std::unordered_map<std::string, std::int64_t> positions;
  if (std::ranges::any_of(jobs, [](const Job& job) { return job.state == JobState::pending; }))
    for (std::string& id : parts_.queue.pending_ids())
      positions.emplace(std::move(id), std::int64_t(positions.size()));
  Json list = Json::array();
  for (const Job& job : jobs) {
    const auto place = positions.find(job.id);
    list.push(tell(job, place == positions.end() ? std::nullopt : std::optional(place->second)));
  }
  return list;
}

std::vector<std::string> JobTeller::jobs_on(const std::string& device) const {
  std::vector<std::string> ids;
  for (const auto& [id, run] : running_)
    if (std::ranges::find(run.devices, device) != run.devices.end()) ids.push_back(id);
  return ids;
}

}  // namespace heddle::engine
