// Workflows come: POST /v1/jobs, /v1/validate and /v1/plan.
#include "engine/base/text.h"
#include "engine/serve/authorization.h"
#include "engine/serve/service.h"
#include "engine/serve/v1.h"
#include "engine/serve/v1_job.h"

namespace heddle::engine {
namespace {

constexpr std::int64_t kMostRepeats = 1000;

// The workflow with what is set in it.
Workflow workflow_of(const Fields& fields, const heddle::Engine& engine) {
  const Json* const given = fields.object("workflow");
  if (given == nullptr)
    refuse_v1(400, "invalid_argument",
              "there is no member 'workflow': give it a workflow, in either of its forms",
              Json(Json::object().set("where", "workflow")));
  Workflow flow = engine.parse(write_json(*given), "workflow");
  if (const Json* sets = fields.object("set"))
    for (const Json::Member& input : sets->members())
      flow.set(input.key, write_json(input.value), "set");
  if (const std::vector<std::string> only = fields.texts("only"); !only.empty())
    flow.only(only, "only");
  return flow;
}

Json told_problems(const heddle::Engine::Problems& problems) {
  Json told = Json::object();
  told.set("errors", json_list(problems.errors)).set("warnings", json_list(problems.warnings));
  const Json answer = parse_json(problems.answer, "answer");
  const Json* nodes = answer.find("node_errors");
  return std::move(told.set("node_errors", nodes == nullptr ? Json::object() : *nodes));
}

heddle::Engine::Problems require_sound(const heddle::Engine& engine, const Workflow& flow) {
  heddle::Engine::Problems problems = engine.check(flow);
  if (!problems.errors.empty())
    refuse_v1(422, "invalid_workflow", join(problems.errors, "\n"), told_problems(problems));
  return problems;
}

// What its outputs carry, so that people can open it again as they have drawn it.
Json extra_data_of(const Fields& fields, const std::string& client) {
  const Json* const given = fields.object("extra_data");
  Json extra = given == nullptr ? Json::object() : *given;
  if (!client.empty()) extra.set("client_id", client);
  const Json* const workflow = fields.object("workflow");
  const Json* const nodes = workflow->find("nodes");
  if (nodes != nullptr && nodes->is_array() && extra.find("extra_pnginfo") == nullptr)
    extra.set("extra_pnginfo", Json(Json::object().set("workflow", *workflow)));
  return extra;
}

HttpResponse submit(const Call& call, const ServiceParts& parts) {
  const Fields fields(call, {"workflow", "set", "only", "id", "priority", "front", "tag", "batch",
                             "user", "client", "paused", "repeats", "extra_data"});
  const Workflow flow = workflow_of(fields, parts.engine);
  const heddle::Engine::Problems problems = require_sound(parts.engine, flow);
  const std::int64_t repeats = fields.integer("repeats", 1, kMostRepeats).value_or(1);
  NewJob job;
  job.id = fields.text("id");
  job.priority = fields.integer("priority", -1'000'000, 1'000'000).value_or(0);
  job.front = fields.flag("front");
  if (job.priority > 0 || job.front)
    require_admin(call.request.caller, "a place before the jobs of others");
  job.user = owner_for(call.request.caller, fields.text("user"));
  job.tag = fields.text("tag");
  job.batch = fields.text("batch");
  job.client = fields.text("client");
  job.is_paused = fields.flag("paused");
  const Json prompt = parse_json(parts.engine.convert(flow), "workflow");
  if (const std::string name = parts.owners.foreign_name(call.request.caller, prompt);
      !name.empty())
    refuse_v1(422, "not_found", cat("there is no file ", quote(printable(name)), " of yours"));
  job.prompt = write_json(prompt);
  job.extra_data = write_json(extra_data_of(fields, job.client));
  job.targets = write_json(json_list(problems.outputs));
  if (repeats > 1 && !job.id.empty())
    refuse_v1(400, "invalid_argument", "'id' names one job, and 'repeats' asks for several",
              Json(Json::object().set("where", "id")));
  if (!job.id.empty() && parts.queue.find(job.id))
    refuse_v1(409, "id_in_use", cat("there is a job ", quote(job.id), " already"));
  if (repeats > 1 && job.batch.empty()) job.batch = make_job_id();
  const std::vector<Job> made =
      parts.queue.submit(std::vector<NewJob>(static_cast<std::size_t>(repeats), job));
  Json answer = Json::object();
  answer.set("jobs", JobTeller(parts).tell(made)).set("batch", text_or_null(job.batch));
  HttpResponse response = json_response(answer.set("warnings", json_list(problems.warnings)), 201);
  return std::move(response.set("Location", cat("/v1/jobs/", percent_encoded(made.front().id))));
}

HttpResponse validate(const Call& call, const heddle::Engine& engine) {
  const Fields fields(call, {"workflow", "set", "only"});
  const heddle::Engine::Problems problems = engine.check(workflow_of(fields, engine));
  Json told = told_problems(problems);
  told.set("valid", problems.errors.empty()).set("outputs", json_list(problems.outputs));
  return json_response(told);
}

HttpResponse plan(const Call& call, const heddle::Engine& engine) {
  const Fields fields(call, {"workflow", "set", "only"});
  const Workflow flow = workflow_of(fields, engine);
  require_sound(engine, flow);
  return json_response(engine.plan_json(flow));
}

}  // namespace

void add_v1_submit_routes(Router& router, const ServiceParts& parts) {
  add_v1(router, "POST", "/v1/jobs", [parts](const Call& call) { return submit(call, parts); });
  add_v1(router, "POST", "/v1/validate",
         [parts](const Call& call) { return validate(call, parts.engine); });
  add_v1(router, "POST", "/v1/plan",
         [parts](const Call& call) { return plan(call, parts.engine); });
}

}  // namespace heddle::engine
