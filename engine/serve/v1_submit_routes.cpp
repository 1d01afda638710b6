// Workflows come: POST /v1/jobs, /v1/validate and /v1/plan.
#include <algorithm>

#include "engine/base/text.h"
#include "engine/serve/authorization.h"
#include "engine/serve/batch.h"
#include "engine/serve/job_kind.h"
#include "engine/serve/service.h"
#include "engine/serve/v1.h"
#include "engine/serve/v1_job.h"

namespace heddle::engine {
namespace {

constexpr std::int64_t kMostRepeats = 1000;

void narrow(const Fields& fields, Workflow& flow) {
  if (const std::vector<std::string> only = fields.texts("only"); !only.empty())
    flow.only(only, "only");
}

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
  narrow(fields, flow);
  return flow;
}

// Without the names of files of somebody else.
Json told_problems(const heddle::Engine::Problems& problems, const Caller& caller,
                   const ServiceParts& parts) {
  Json told = Json::object();
  told.set("errors", json_list(problems.errors)).set("warnings", json_list(problems.warnings));
  const Json answer = parse_json(problems.answer, "answer");
  const Json* nodes = answer.find("node_errors");
  told.set("node_errors", nodes == nullptr ? Json::object() : *nodes);
  return parts.owners.without_names(caller, std::move(told));
}

heddle::Engine::Problems require_sound(const Workflow& flow, const Caller& caller,
                                       const ServiceParts& parts) {
  heddle::Engine::Problems problems = parts.engine.check(flow);
  if (problems.errors.empty()) return problems;
  Json told = told_problems(problems, caller, parts);
  std::vector<std::string> errors;
  for (const Json& error : told.at("errors").as_array()) errors.push_back(error.as_string());
  refuse_v1(422, "invalid_workflow", join(errors, "\n"), std::move(told));
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

// Nodes may be named by title or class; a batch knows ids.
std::string with_node_id(const std::string& name, const Workflow& flow) {
  for (std::size_t dot = name.rfind('.'); dot != name.npos && dot > 0;
       dot = name.rfind('.', dot - 1))
    if (const std::optional<Workflow::Node> node = flow.find(name.substr(0, dot)))
      return cat(node->id, name.substr(dot));
  return name;
}

Batch batch_of(const Fields& fields, const Workflow& flow) {
  Batch batch;
  const std::optional<std::int64_t> repeats = fields.integer("repeats", 1, kMostRepeats);
  if (const Json* sweep = fields.object("sweep")) {
    batch = read_batch(*sweep);
    if (repeats && sweep->find("repeats") != nullptr)
      refuse_v1(400, "invalid_argument", "'repeats' is given twice: beside 'sweep' and in it",
                Json(Json::object().set("where", "repeats")));
  }
  if (repeats) batch.repeats = std::uint64_t(*repeats);
  for (BatchInput& input : batch.inputs) input.name = with_node_id(input.name, flow);
  return batch;
}

// What a submission says of all of its jobs alike.
NewJob job_of(const Fields& fields, const Caller& caller) {
  NewJob job;
  job.id = fields.text("id");
  job.priority = fields.integer("priority", -1'000'000, 1'000'000).value_or(0);
  job.front = fields.flag("front");
  if (job.priority > 0 || job.front) require_admin(caller, "a place before the jobs of others");
  job.user = owner_for(caller, fields.text("user"));
  job.tag = fields.text("tag");
  job.batch = fields.text("batch");
  job.client = fields.text("client");
  job.is_background = fields.flag("background");
  job.is_paused = fields.flag("paused");
  job.extra_data = write_json(extra_data_of(fields, job.client));
  return job;
}

// `told`: what is wrong with them, each thing once.
void add_new(std::vector<std::string>& told, const std::vector<std::string>& problems) {
  for (const std::string& problem : problems)
    if (std::ranges::find(told, problem) == told.end()) told.push_back(problem);
}

void require_own_files(const Json& prompt, const Caller& caller, const ServiceParts& parts) {
  if (const std::string name = parts.owners.foreign_name(caller, prompt); !name.empty())
    refuse_v1(422, "not_found", cat("there is no file ", quote(printable(name)), " of yours"));
  if (caller.is_admin) return;
  const auto folder_of = [&](std::string_view type, std::string_view input) {
    return parts.engine.input_folder(type, input);
  };
  if (const std::string name = linked_file(prompt, folder_of); !name.empty())
    refuse_v1(422, "invalid_workflow",
              cat("input ", quote(printable(name)), " chooses a file, and is linked. ",
                  "Name the file: whose it is has to be known before the workflow runs."));
}

// A job of every prompt of the batch. Each that differs is checked: one value may be no good.
std::vector<NewJob> jobs_of(const Fields& fields, const Caller& caller, const ServiceParts& parts,
                            std::vector<std::string>& warnings) {
  const heddle::Engine& engine = parts.engine;
  const Workflow flow = workflow_of(fields, engine);
  const Batch batch = batch_of(fields, flow);
  NewJob job = job_of(fields, caller);
  const Json prompt = parse_json(engine.convert(flow), "workflow");
  std::vector<NewJob> jobs;
  for (const Json& one : expand_batch(prompt, batch)) {
    if (jobs.size() % batch.repeats == 0) {
      require_own_files(one, caller, parts);
      job.prompt = write_json(one);
      Workflow variant = flow;
      if (!batch.inputs.empty()) {
        variant = engine.parse(job.prompt, "workflow");
        narrow(fields, variant);
      }
      const heddle::Engine::Problems problems = require_sound(variant, caller, parts);
      add_new(warnings, problems.warnings);
      job.targets = write_json(json_list(problems.outputs));
      note_kind(job, engine);
    }
    jobs.push_back(job);
  }
  if (jobs.size() == 1) return jobs;
  if (!job.id.empty())
    refuse_v1(400, "invalid_argument",
              cat("'id' names one job, and ", jobs.size(), " are asked for"),
              Json(Json::object().set("where", "id")));
  if (!job.batch.empty()) return jobs;
  const std::string id = make_job_id();
  for (NewJob& one : jobs) one.batch = id;
  return jobs;
}

HttpResponse submit(const Call& call, const ServiceParts& parts) {
  const Fields fields(
      call, {"workflow", "set", "only", "id", "priority", "front", "tag", "batch", "user", "client",
             "background", "paused", "repeats", "sweep", "extra_data"});
  std::vector<std::string> warnings;
  const std::vector<NewJob> jobs = jobs_of(fields, call.request.caller, parts, warnings);
  const NewJob& first = jobs.front();
  if (!first.id.empty() && parts.queue.find(first.id))
    refuse_v1(409, "id_in_use", cat("there is a job ", quote(first.id), " already"));
  const std::vector<Job> made = parts.queue.submit(jobs);
  Json answer = Json::object();
  answer.set("jobs", JobTeller(parts).tell(made)).set("batch", text_or_null(first.batch));
  HttpResponse response = json_response(answer.set("warnings", json_list(warnings)), 201);
  return std::move(response.set("Location", cat("/v1/jobs/", percent_encoded(made.front().id))));
}

HttpResponse validate(const Call& call, const ServiceParts& parts) {
  const heddle::Engine& engine = parts.engine;
  const Fields fields(call, {"workflow", "set", "only"});
  const Workflow flow = workflow_of(fields, engine);
  Json prompt = parse_json(engine.convert(flow), "workflow");
  require_own_files(prompt, call.request.caller, parts);
  const heddle::Engine::Problems problems = engine.check(flow);
  Json told = told_problems(problems, call.request.caller, parts);
  told.set("valid", problems.errors.empty()).set("outputs", json_list(problems.outputs));
  told.set("prompt", std::move(prompt));
  return json_response(told);
}

HttpResponse plan(const Call& call, const ServiceParts& parts) {
  const heddle::Engine& engine = parts.engine;
  const Fields fields(call, {"workflow", "set", "only"});
  const Workflow flow = workflow_of(fields, engine);
  require_own_files(parse_json(engine.convert(flow), "workflow"), call.request.caller, parts);
  require_sound(flow, call.request.caller, parts);
  return json_response(engine.plan_json(flow));
}

}  // namespace

void add_v1_submit_routes(Router& router, const ServiceParts& parts) {
  add_v1(router, "POST", "/v1/jobs", [parts](const Call& call) { return submit(call, parts); });
  add_v1(router, "POST", "/v1/validate",
         [parts](const Call& call) { return validate(call, parts); });
  add_v1(router, "POST", "/v1/plan", [parts](const Call& call) { return plan(call, parts); });
}

}  // namespace heddle::engine
