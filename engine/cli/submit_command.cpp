#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/server_client.h"
#include "engine/cli/submission.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Json;

void tell_submitted(const Json& job, const Settings& settings, Output& output) {
  if (settings.json) {
    Json told = Json::object();
    told.set("event", "submitted").set("job", job);
    output.write(cat(engine::write_json(told), "\n"));
  } else {
    output.write(cat(job.at("id").as_string(), "\n"));
  }
}

void tell_progress(std::string_view type, const Json& data) {
  if (type == "node_started")
    to_stderr(
        cat("node ", data.at("node").as_string(), " (", data.at("class_type").as_string(), ")"));
  if (type == "run_waiting") to_stderr(data.at("message").as_string());
  if (type == "warning") to_stderr(cat("warning: ", data.at("message").as_string()));
}

void tell_ended(const Json& job, const ServerClient& server, const Settings& settings,
                Output& output) {
  if (settings.json) {
    Json told = Json::object();
    told.set("event", "job_ended").set("job", job);
    output.write(cat(engine::write_json(told), "\n"));
    return;
  }
  std::string text = cat(job.at("id").as_string(), " ", job.at("state").as_string());
  if (!job.at("started_ms").is_null())
    text += cat(
        " ", format_seconds(
                 double(job.at("ended_ms").as_int64() - job.at("started_ms").as_int64()) / 1000));
  output.write(cat(text, "\n"));
  for (const Json& made : job.at("outputs").as_array())
    output.write(cat("  ",
                     made.find("url") != nullptr ? server.url(made.at("url").as_string())
                                                 : cat(made.at("kind").as_string(), ": ",
                                                       engine::write_json(made.at("value"))),
                     "\n"));
  if (!job.at("error").is_null()) to_stderr(job.at("error").at("message").as_string());
}

}  // namespace

int submit_jobs(const Request& request, Output& output) {
  const Settings& settings = request.settings;
  const ServerClient server(settings.server);
  std::vector<Json> bodies;  // all of them are read before one is taken
  for (const std::string& file : request.operands)
    bodies.push_back(submission_of(Workflow::load(file), file, settings, server).body);
  std::vector<std::string> ids;
  for (const Json& body : bodies) {
    const Json answer = server.post("/v1/jobs", body);
    if (!settings.quiet)
      for (const Json& warning : answer.at("warnings").as_array())
        to_stderr(cat("warning: ", warning.as_string()));
    for (const Json& job : answer.at("jobs").as_array()) {
      ids.push_back(job.at("id").as_string());
      tell_submitted(job, settings, output);
    }
  }
  int code = kExitDone;
  if (!settings.job.wait) return code;
  for (const std::string& id : ids) {
    const Json job = server.wait_for(id, [&](std::string_view type, const Json& data) {
      if (!settings.quiet && !settings.json) tell_progress(type, data);
    });
    tell_ended(job, server, settings, output);
    if (job.at("state").as_string() != "done") code = kExitFailed;
  }
  return code;
}

}  // namespace heddle::cli
