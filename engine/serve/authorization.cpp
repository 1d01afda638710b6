#include "engine/serve/authorization.h"

#include <algorithm>
#include <iterator>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

struct Rule {
  std::string_view pattern;
  Right right;
};

using enum Right;

// Routes that are there under "/api" as well stand here once.
constexpr Rule kRules[] = {
    // Jobs: each of these leaves out those of others.
    {"POST /prompt", anyone},
    {"GET /prompt", anyone},
    {"GET /queue", anyone},
    {"POST /queue", anyone},
    {"POST /interrupt", anyone},
    {"GET /history", anyone},
    {"POST /history", anyone},
    {"GET /history/{id}", anyone},
    {"GET /api/jobs", anyone},
    {"GET /api/jobs/{id}", anyone},
    {"POST /api/jobs/cancel", anyone},
    {"POST /api/jobs/{id}/cancel", anyone},
    {"GET /v1/jobs", anyone},
    {"POST /v1/jobs", anyone},
    {"GET /v1/queue", anyone},
    {"POST /v1/cancel", anyone},
    {"GET /v1/events", anyone},
    {"GET /v1/jobs/{id}", own_job},
    {"DELETE /v1/jobs/{id}", own_job},
    {"GET /v1/jobs/{id}/events", own_job},
    {"GET /v1/jobs/{id}/preview", own_job},
    {"GET /v1/jobs/{id}/trace", own_job},
    {"POST /v1/jobs/{id}/cancel", own_job},
    {"POST /v1/jobs/{id}/move", own_job},
    {"POST /v1/jobs/{id}/pause", own_job},
    {"POST /v1/jobs/{id}/resume", own_job},
    {"POST /v1/jobs/{id}/retry", own_job},
    {"POST /v1/queue/pause", admin},
    {"POST /v1/queue/resume", admin},
    // Files of users.
    {"GET /view", anyone},
    {"POST /upload/image", anyone},
    {"POST /upload/mask", anyone},
    {"GET /internal/files/{folder}", anyone},
    {"GET /settings", anyone},
    {"POST /settings", anyone},
    {"GET /settings/{id}", anyone},
    {"POST /settings/{id}", anyone},
    {"GET /userdata", anyone},
    {"GET /v2/userdata", anyone},
    {"GET /userdata/{file}", anyone},
    {"POST /userdata/{file}", anyone},
    {"DELETE /userdata/{file}", anyone},
    {"POST /userdata/{file}/move/{dest}", anyone},
    {"GET /users", anyone},
    {"POST /users", admin},
    // What there is.
    {"GET /object_info", anyone},
    {"GET /object_info/{class}", anyone},
    {"GET /embeddings", anyone},
    {"GET /models", anyone},
    {"GET /models/{folder}", anyone},
    {"GET /experiment/models", anyone},
    {"GET /experiment/models/{folder}", anyone},
    {"GET /experiment/models/preview/{folder}/{path_index}/{file...}", anyone},
    {"GET /view_metadata/{folder}", anyone},
    {"GET /system_stats", anyone},
    {"GET /features", anyone},
    {"GET /i18n", anyone},
    {"GET /workflow_templates", anyone},
    {"GET /node_replacements", anyone},
    {"GET /global_subgraphs", anyone},
    {"GET /global_subgraphs/{id}", anyone},
    {"GET /extensions", anyone},
    {"GET /extensions/{pack}/{path...}", anyone},
    {"GET /workflow_templates/{pack}/{file}", anyone},
    {"GET /api/assets", anyone},
    {"POST /api/assets", anyone},
    {"GET /api/assets/{path...}", anyone},
    {"POST /api/assets/{path...}", anyone},
    {"PUT /api/assets/{path...}", anyone},
    {"DELETE /api/assets/{path...}", anyone},
    {"GET /api/tags", anyone},
    {"POST /v1/validate", anyone},
    {"POST /v1/plan", anyone},
    {"GET /v1/devices", anyone},
    {"GET /v1/devices/{id}", anyone},
    {"GET /v1/models", anyone},
    {"GET /v1/openapi.json", anyone},
    {"GET /v1/health/live", anyone},
    {"GET /v1/health/ready", anyone},
    {"GET /v1/metrics", anyone},
    {"GET /metrics", anyone},
    {"GET /v1/session", anyone},
    {"POST /v1/session", anyone},
    {"DELETE /v1/session", anyone},
    // Pages.
    {"GET /", anyone},
    {"GET /heddle", anyone},
    {"GET /heddle/{file}", anyone},
    {"GET /templates/{path...}", anyone},
    {"GET /docs/{path...}", anyone},
    {"GET /{path...}", anyone},
    // The server itself.
    {"POST /free", admin},
    {"POST /v1/devices/{id}/enable", admin},
    {"POST /v1/devices/{id}/disable", admin},
    {"POST /v1/devices/{id}/drain", admin},
    {"POST /v1/models/load", admin},
    {"POST /v1/models/pin", admin},
    {"POST /v1/models/unload", admin},
    {"POST /v1/models/unpin", admin},
    {"GET /internal/queue_backup", admin},
    {"GET /internal/logs", admin},
    {"GET /internal/logs/raw", admin},
    {"PATCH /internal/logs/subscribe", admin},
    {"GET /internal/folder_paths", admin},
};

std::optional<Right> listed(std::string_view pattern) {
  const auto* const found = std::ranges::find(kRules, pattern, &Rule::pattern);
  return found == std::end(kRules) ? std::nullopt : std::optional(found->right);
}

[[noreturn]] void refuse(unsigned status, std::string_view what) {
  throw Refused{json_response(Json(Json::object().set("error", what)), status)};
}

}  // namespace

std::optional<Right> right_of(std::string_view pattern) {
  if (const std::optional<Right> right = listed(pattern)) return right;
  constexpr std::string_view kPrefix = " /api/";
  const std::size_t at = pattern.find(' ');
  if (at == pattern.npos || !pattern.substr(at).starts_with(kPrefix)) return {};
  return listed(cat(pattern.substr(0, at), " /", pattern.substr(at + kPrefix.size())));
}

void authorize(const Call& call, std::string_view pattern, const JobQueue& queue) {
  const Caller& caller = call.request.caller;
  if (caller.is_admin) return;
  const Right right = right_of(pattern).value_or(Right::admin);
  if (right == Right::admin)
    require_admin(caller, cat(call.request.method, " ", printable(call.request.path)));
  if (right != Right::own_job) return;
  const std::optional<Job> job = queue.find_brief(call.part("id"));
  if (!job || !caller.may_see(job->user))
    refuse(404, cat("there is no job ", quote(call.part("id"))));
}

void require_admin(const Caller& caller, std::string_view what) {
  if (!caller.is_admin) refuse(403, cat(what, " is for administrators: use a key of role admin"));
}

std::string owner_for(const Caller& caller, const std::string& wanted) {
  if (wanted.empty() || wanted == caller.user) return caller.user;
  require_admin(caller, cat("a job of the user ", quote(printable(wanted))));
  return wanted;
}

JobSelection selection_for(const Caller& caller, JobSelection selection) {
  if (caller.is_admin) return selection;
  const bool is_of_others = !selection.user.empty() && selection.user != caller.user;
  if (is_of_others) return {};  // none
  selection.user = caller.user;
  return selection;
}

std::vector<Job> visible(const Caller& caller, std::vector<Job> jobs) {
  if (!caller.is_admin)
    std::erase_if(jobs, [&](const Job& job) { return !caller.may_see(job.user); });
  return jobs;
}

std::vector<std::string> visible_ids(const Caller& caller, std::vector<std::string> ids,
                                     const JobQueue& queue) {
  if (!caller.is_admin)
    std::erase_if(ids, [&](const std::string& id) {
      const std::optional<Job> job = queue.find_brief(id);
      return !job || !caller.may_see(job->user);
    });
  return ids;
}

}  // namespace heddle::engine
