// Jobs come, are listed, are stopped: /prompt, /queue, /interrupt, /free.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <regex>
#include <set>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/serve/authorization.h"
#include "engine/serve/job_kind.h"
#include "engine/serve/service.h"

namespace heddle::engine {
namespace {

HttpResponse empty_response() { return {}; }

// Whatever the type of the body is said to be: Python's clients call it a form.
Json body_of(const Call& call) {
  try {
    Json body = parse_json(call.request.body, "body");
    if (body.is_object()) return body;
  } catch (const Error&) {
  }
  throw Refused{text_response("400: the body is no JSON object", 400)};
}

// Where a body need not be there.
Json body_or_nothing(const Call& call) {
  try {
    Json body = parse_json(call.request.body, "body");
    if (body.is_object()) return body;
  } catch (const Error&) {
  }
  return Json::object();
}

bool is_true(const Json& body, std::string_view key) {
  const Json* value = body.find(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

std::string text_at(const Json& body, std::string_view key) {
  const Json* value = body.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

std::vector<std::string> ids_at(const Json& body, std::string_view key) {
  std::vector<std::string> ids;
  if (const Json* list = body.find(key); list != nullptr && list->is_array())
    for (const Json& id : list->as_array())
      if (id.is_string()) ids.push_back(id.as_string());
  return ids;
}

[[noreturn]] void refuse_prompt(std::string_view type, std::string_view message,
                                std::string_view details, Json extra = Json::object(),
                                Json node_errors = Json::object()) {
  Json error = Json::object(), answer = Json::object();
  error.set("type", type).set("message", message).set("details", details);
  error.set("extra_info", std::move(extra));
  answer.set("error", std::move(error)).set("node_errors", std::move(node_errors));
  throw Refused{json_response(answer, 400)};
}

void require_classes(const Json& prompt) {
  for (const Json::Member& node : prompt.members()) {
    const Json* type = node.value.find("class_type");
    if (type != nullptr && type->is_string()) continue;
    const Json* meta = node.value.find("_meta");
    const std::string title = meta == nullptr ? "" : text_at(*meta, "title");
    Json extra = Json::object();
    extra.set("node_id", node.key).set("class_type", Json());
    extra.set("node_title", title.empty() ? cat("Node ID '#", node.key, "'") : title);
    refuse_prompt("missing_node_type",
                  cat("Node '", title.empty() ? cat("ID #", node.key) : title,
                      "' has no class_type. The workflow may be corrupted, or a custom node is "
                      "missing."),
                  cat("Node ID '#", node.key, "'"), std::move(extra));
  }
}

std::string id_of(const Json& body) {
  const Json* id = body.find("prompt_id");
  if (id == nullptr || id->is_null()) return make_job_id();
  static const std::regex uuid("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
  if (!id->is_string() || !std::regex_match(id->as_string(), uuid))
    refuse_prompt("invalid_prompt_id", "prompt_id must be a valid UUID",
                  "Give a UUID in lower case with hyphens, or none.");
  return id->as_string();
}

// Classes whose nodes are outputs: the engine is asked once, when somebody needs to know. Any
// thread.
class OutputClasses {
 public:
  explicit OutputClasses(const heddle::Engine& engine) : engine_(engine) {}
  bool has(const std::string& name) const {
    std::call_once(asked_, [&] {
      const Json all = parse_json(engine_.object_info(""), "object_info");
      for (const Json::Member& type : all.members())
        if (const Json* is_output = type.value.find("output_node");
            is_output != nullptr && is_output->as_bool())
          names_.insert(type.key);
    });
    return names_.contains(name);
  }

 private:
  const heddle::Engine& engine_;
  mutable std::once_flag asked_;
  mutable std::set<std::string> names_;
};

// Of the outputs that are there, those that the request wants: others are not looked for. Empty:
// all.
Json targets_of(const Json& body, const Json& prompt, const OutputClasses& outputs) {
  const Json* wanted = body.find("partial_execution_targets");
  if (wanted == nullptr || wanted->is_null()) return Json::array();
  Json targets = Json::array();
  for (const std::string& id : ids_at(body, "partial_execution_targets"))
    if (const Json* node = prompt.find(id);
        node != nullptr && outputs.has(text_at(*node, "class_type")))
      targets.push(id);
  if (targets.size() == 0) refuse_prompt("prompt_no_outputs", "Prompt has no outputs", "");
  return targets;
}

// What is kept of it: no secret, and when it came.
Json extra_data_of(const Json& body, const std::string& client) {
  const Json* given = body.find("extra_data");
  Json extra = Json::object();
  if (given != nullptr && given->is_object())
    for (const Json::Member& member : given->members())
      if (member.key != "auth_token_comfy_org" && member.key != "api_key_comfy_org")
        extra.set(member.key, member.value);
  if (!client.empty()) extra.set("client_id", client);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::move(
      extra.set("create_time", std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
}

// What would run before the jobs of others is not for everybody to say.
void require_fair(const Caller& caller, const Json& body) {
  if (caller.is_admin) return;
  const Json* number = body.find("number");
  if (is_true(body, "front") || (number != nullptr && number->is_number()))
    require_admin(caller, "a place of one's own in the queue");
}

NewJob job_of_body(const Json& body, const OutputClasses& outputs) {
  const Json* prompt = body.find("prompt");
  if (prompt == nullptr || !prompt->is_object())
    refuse_prompt("no_prompt", "No prompt provided", "No prompt provided");
  require_classes(*prompt);
  NewJob job;
  job.id = id_of(body);
  job.client = text_at(body, "client_id");
  if (const Json* number = body.find("number"); number != nullptr && number->is_number())
    job.number = number->as_double();
  job.front = is_true(body, "front");
  job.prompt = write_json(*prompt);
  job.extra_data = write_json(extra_data_of(body, job.client));
  if (const Json targets = targets_of(body, *prompt, outputs); targets.size() > 0)
    job.targets = write_json(targets);
  return job;
}

// What the engine says of it; gives the errors of nodes, and the outputs that will run.
Json check_prompt(const ServiceParts& parts, const Caller& caller, NewJob& job) {
  const heddle::Engine& engine = parts.engine;
  Job checked;
  checked.prompt = job.prompt;
  checked.targets = job.targets;
  heddle::Engine::Problems problems;
  try {
    problems = engine.check(engine.parse(workflow_text(checked), "prompt"));
  } catch (const EngineError& error) {
    refuse_prompt("invalid_prompt", "Cannot execute because the prompt cannot be read",
                  error.what());
  }
  const Json answer = parts.owners.without_names(caller, parse_json(problems.answer, "answer"));
  if (answer.find("error") != nullptr) throw Refused{json_response(answer, 400)};
  Json targets = Json::array();
  for (const std::string& id : problems.outputs) targets.push(id);
  job.targets = write_json(targets);
  return answer.at("node_errors");
}

HttpResponse submit(const Call& call, const ServiceParts& parts, const OutputClasses& outputs) {
  const Caller& caller = call.request.caller;
  const Json body = body_of(call);
  require_fair(caller, body);
  NewJob job = job_of_body(body, outputs);
  job.user = caller.user;
  if (const std::string name = parts.owners.foreign_name(caller, body.at("prompt")); !name.empty())
    refuse_prompt("invalid_prompt", "Cannot execute because a file of somebody else is named",
                  cat("There is no file ", quote(printable(name)), " of yours."));
  const auto folder_of = [&](std::string_view type, std::string_view input) {
    return parts.engine.input_folder(type, input);
  };
  if (const std::string name =
          caller.is_admin ? std::string() : linked_file(body.at("prompt"), folder_of);
      !name.empty())
    refuse_prompt("invalid_prompt", "Cannot execute because an input that chooses a file is linked",
                  cat("Input ", quote(printable(name)), " is linked. Name the file instead."));
  const Json node_errors = check_prompt(parts, caller, job);
  note_kind(job, parts.engine);
  try {
    const Job made = parts.queue.submit({job}).front();
    Json answer = Json::object();
    answer.set("prompt_id", made.id).set("number", made.number).set("node_errors", node_errors);
    return json_response(answer);
  } catch (const QueueFull& full) {
    Json error = Json::object();
    return json_response(error.set("error", full.full()), 503).set("Retry-After", "10");
  } catch (const Error& error) {
    if (error.code() == Code::io) {  // the disk is full, perhaps
      log(Level::error, cat("POST /prompt: ", error.full()));
      return json_response(Json(Json::object().set("error", error.full())), 500);
    }
    if (error.code() != Code::invalid_argument) throw;
    refuse_prompt("invalid_prompt_id", "prompt_id is in use", error.full());
  }
}

Json parsed_or(const std::string& text, Json otherwise) {
  return text.empty() ? std::move(otherwise) : parse_json(text, "job");
}

Json items(const std::vector<Job>& jobs) {
  Json list = Json::array();
  for (const Job& job : jobs) {
    Json item = Json::array();
    item.push(job.number).push(job.id).push(parsed_or(job.prompt, Json::object()));
    item.push(parsed_or(job.extra_data, Json::object()));
    list.push(std::move(item.push(parsed_or(job.targets, Json::array()))));
  }
  return list;
}

void cancel(const Call& call, const ServiceParts& parts, const JobSelection& selection) {
  const JobSelection theirs = selection_for(call.request.caller, selection);
  parts.runner.stop(parts.queue.cancel(theirs).running);
}

}  // namespace

void add_prompt_routes(Router& router, const ServiceParts& parts) {
  router.add_twice("POST", "/prompt",
                   [parts, outputs = std::make_shared<OutputClasses>(parts.engine)](
                       const Call& call) { return submit(call, parts, *outputs); });
  router.add_twice("GET", "/prompt", [parts](const Call&) {
    const Json message = status_message(parts.queue);
    return json_response(message.at("data").at("status"));
  });
  router.add_twice("GET", "/queue", [parts](const Call& call) {
    const Caller& caller = call.request.caller;
    Json answer = Json::object();
    std::vector<Job> waiting = parts.queue.list(JobState::pending);
    for (Job& job : parts.queue.list(JobState::paused)) waiting.push_back(std::move(job));
    answer.set("queue_running", items(visible(caller, parts.queue.list(JobState::running))));
    return json_response(answer.set("queue_pending", items(visible(caller, std::move(waiting)))));
  });
  router.add_twice("POST", "/queue", [parts](const Call& call) {
    const Json body = body_of(call);
    if (is_true(body, "clear")) cancel(call, parts, {.all = true, .but_running = true});
    if (const std::vector<std::string> ids = ids_at(body, "delete"); !ids.empty())
      cancel(call, parts, {.ids = ids, .but_running = true});
    return empty_response();
  });
  router.add_twice("POST", "/interrupt", [parts](const Call& call) {
    const std::string id = text_at(body_or_nothing(call), "prompt_id");
    JobSelection selection{.all = id.empty(), .only_running = true};
    if (!id.empty()) selection.ids = {id};
    cancel(call, parts, selection);
    return empty_response();
  });
  router.add_twice("POST", "/free", [parts](const Call& call) {
    const Json body = body_of(call);
    parts.runner.free(is_true(body, "unload_models"), is_true(body, "free_memory"));
    return empty_response();
  });
}

}  // namespace heddle::engine
