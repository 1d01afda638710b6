// GET /v1/jobs/{id}/trace: the timeline of a job that has run, where the server writes such.
#include <algorithm>
#include <cctype>

#include "engine/base/text.h"
#include "engine/serve/served_files.h"
#include "engine/serve/service.h"
#include "engine/serve/v1.h"

namespace heddle::engine {
namespace {

// Of a job that is named so that a file can be.
bool has_plain_name(const std::string& id) {
  return !id.empty() && std::ranges::all_of(id, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
}

HttpResponse trace_of(const Call& call, const ServiceParts& parts) {
  const std::string& id = call.part("id");
  const std::optional<Job> job = parts.queue.find_brief(id);
  if (!job) refuse_v1(404, "not_found", cat("there is no job ", quote(id)));
  const std::filesystem::path& traces = parts.options.runner.traces;
  if (traces.empty())
    refuse_v1(404, "not_found", "this server writes no timelines: it was started without --traces");
  std::optional<HttpResponse> response;
  // Without a start it is another one's, whose id this one has again.
  if (has_plain_name(id) && has_ended(job->state) && job->started_ms > 0)
    response = file_response(call.request, traces / (id + ".json"));
  if (!response)
    refuse_v1(404, "not_found",
              cat("job ", quote(id), " has no timeline",
                  has_ended(job->state) ? "" : cat(" yet: it is ", job_state_name(job->state))));
  response->set("Content-Type", "application/json");
  return std::move(
      response->set("Content-Disposition", cat("attachment; filename=\"heddle-", id, ".json\"")));
}

}  // namespace

void add_v1_trace_routes(Router& router, const ServiceParts& parts) {
  add_v1(router, "GET", "/v1/jobs/{id}/trace",
         [parts](const Call& call) { return trace_of(call, parts); });
}

}  // namespace heddle::engine
