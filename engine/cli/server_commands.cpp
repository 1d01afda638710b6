// ps, queue, models and devices --server: what a server has, and how it is changed.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/server_client.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Code;
using engine::Error;
using engine::Json;

std::string text_or(const Json& value, std::string_view otherwise) {
  return value.is_string() ? value.as_string() : std::string(otherwise);
}

// "cuda:0: node 7 (Class) 40 %", of what runs; else why it waits.
std::string what_of(const Json& job) {
  if (const Json& waiting = job.at("waiting"); !waiting.is_null())
    return waiting.at("message").as_string();
  const Json& progress = job.at("progress");
  if (progress.is_null()) return "";
  std::vector<std::string> parts;
  if (progress.at("state").as_string() != "running")
    parts.push_back(progress.at("state").as_string());
  for (const Json& device : progress.at("devices").as_array()) parts.push_back(device.as_string());
  for (const Json& node : progress.at("nodes").as_array()) {
    char share[16];
    std::snprintf(share, sizeof share, "%.0f %%", 100 * node.at("fraction").as_double());
    parts.push_back(cat("node ", node.at("id").as_string(), " (", node.at("class_type").as_string(),
                        ") ", share));
  }
  return engine::join(parts, ", ");
}

void add_job(Table& table, const Json& job) {
  table.row({job.at("id").as_string(), job.at("state").as_string(),
             cat(job.at("priority").as_int64()), text_or(job.at("tag"), "-"), what_of(job)});
}

// An answer for programs; false: it is for people.
bool tell_json(const Json& answer, const Settings& settings, Output& output) {
  if (settings.json) output.write(cat(engine::write_json(answer), "\n"));
  return settings.json;
}

[[noreturn]] void refuse_command(const std::string& what) {
  throw Error(Code::invalid_argument, cat("heddle queue: ", what));
}

std::string bytes_text(const Json& bytes) { return engine::format_bytes(bytes.as_uint64()); }

}  // namespace

int list_jobs(const Request& request, Output& output) {
  const ServerClient server(request.settings.server);
  const Json queue = server.get("/v1/queue?limit=1000");
  if (tell_json(queue, request.settings, output)) return kExitDone;
  Table table;
  table.row({"id", "state", "priority", "tag", "what"});
  for (const Json& job : queue.at("running").as_array()) add_job(table, job);
  for (const Json& job : queue.at("waiting").as_array()) add_job(table, job);
  output.write(table.text());
  return kExitDone;
}

namespace {

int tell_queue(const Json& queue, const Settings& settings, Output& output) {
  if (tell_json(queue, settings, output)) return kExitDone;
  const Json& counts = queue.at("counts");
  std::string text = cat("running ", counts.at("running").as_int64(), " of ",
                         queue.at("workers").as_int64(), " at a time");
  for (const char* state : {"pending", "paused", "ended"})
    text += cat(", ", state, " ", counts.at(state).as_int64());
  if (queue.at("is_paused").as_bool()) text += "; the queue is paused";
  output.write(cat(text, "\n"));
  return kExitDone;
}

int cancel_jobs(const ServerClient& server, const std::vector<std::string>& ids,
                const Settings& settings, Output& output) {
  const JobSettings& job = settings.job;
  Json selection = Json::object(), list = Json::array();
  for (const std::string& id : ids) list.push(id);
  if (!ids.empty()) selection.set("ids", std::move(list));
  if (!job.tag.empty()) selection.set("tag", job.tag);
  if (!job.batch.empty()) selection.set("batch", job.batch);
  if (job.all) selection.set("all", true);
  if (selection.size() == 0)
    refuse_command("say which jobs to cancel: ID, --tag TAG, --batch ID or --all.");
  if (job.but_running) selection.set("but_running", true);
  const Json answer = server.post("/v1/cancel", selection);
  if (tell_json(answer, settings, output)) return kExitDone;
  for (const char* how : {"cancelled", "cancelling"})
    for (const Json& id : answer.at(how).as_array())
      output.write(cat(id.as_string(), " ", how, "\n"));
  return kExitDone;
}

Json move_of(const JobSettings& job) {
  Json move = Json::object();
  if (job.front) move.set("to", "front");
  if (job.back) move.set("to", "back");
  if (!job.before.empty()) move.set("before", job.before);
  if (job.priority) move.set("priority", *job.priority);
  const int ways =
      int(job.front) + int(job.back) + int(!job.before.empty()) + int(job.priority.has_value());
  if (ways != 1) refuse_command("say where to: --front, --back, --before ID or --priority N.");
  return move;
}

void tell_job(const Json& job, const Settings& settings, Output& output) {
  if (!tell_json(job, settings, output))
    output.write(cat(job.at("id").as_string(), " ", job.at("state").as_string(), "\n"));
}

}  // namespace

int change_queue(const Request& request, Output& output) {
  const Settings& settings = request.settings;
  const ServerClient server(settings.server);
  if (request.operands.empty())
    return tell_queue(server.get("/v1/queue?limit=0"), settings, output);
  const std::string& action = request.operands.front();
  const std::vector<std::string> ids(request.operands.begin() + 1, request.operands.end());
  static const std::vector<std::string> kActions = {"pause", "resume", "cancel",
                                                    "retry", "delete", "move"};
  if (std::find(kActions.begin(), kActions.end(), action) == kActions.end())
    refuse_command(cat("there is no action ", engine::quote(action), ".",
                       engine::did_you_mean(action, kActions), " The actions are ",
                       engine::join(kActions, ", "), "."));
  if (action == "cancel") return cancel_jobs(server, ids, settings, output);
  if (ids.empty() && (action == "pause" || action == "resume")) {
    server.post(cat("/v1/queue/", action));
    return tell_queue(server.get("/v1/queue?limit=0"), settings, output);
  }
  if (ids.empty()) refuse_command(cat(action, ": name a job by its id, as heddle ps lists it."));
  if (action == "move" && ids.size() > 1) refuse_command("move: one job at a time.");
  for (const std::string& id : ids)
    if (action == "delete")
      server.remove(job_path(id));
    else if (action == "move")
      tell_job(server.post(job_path(id, action), move_of(settings.job)), settings, output);
    else if (action == "retry" && settings.job.from_start)
      tell_job(server.post(job_path(id, action), Json(Json::object().set("from_start", true))),
               settings, output);
    else
      tell_job(server.post(job_path(id, action)), settings, output);
  return kExitDone;
}

namespace {

void write_models(const Json& models, Output& output) {
  Table table;
  table.row({"device", "memory", "in use", "pinned", "model"});
  for (const Json& model : models.as_array()) {
    const Json* const places = model.find("devices");
    const auto add = [&](const Json& place) {
      table.row({place.at("device").as_string(), bytes_text(place.at("bytes")),
                 bytes_text(place.at("bytes_in_use")), place.at("pinned").as_bool() ? "yes" : "no",
                 model.at("name").as_string()});
    };
    if (places == nullptr) add(model);
    for (std::size_t i = 0; places != nullptr && i < places->size(); ++i) add(places->at(i));
  }
  output.write(table.text());
}

// What is to be loaded: a workflow that is here, or a model file of the server's.
Json load_of(const std::string& file, const std::string& device) {
  Json body = Json::object();
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored))
    body.set("workflow", engine::parse_json(Workflow::load(file).text(), file));
  else
    body.set("file", file);
  return std::move(body.set("device", device));
}

Json change_models(const std::vector<std::string>& words, const ServerClient& server) {
  const std::string& action = words.front();
  const bool has_device = words.size() == 3;
  Json body = Json::object();
  if (action == "load" && has_device)
    return server.post("/v1/models/load", load_of(words[1], words[2]));
  const bool is_unload = action == "unload" && words.size() <= 3;
  const bool is_pin = (action == "pin" || action == "unpin") && has_device;
  if (!is_unload && !is_pin)
    throw Error(Code::invalid_argument,
                cat("heddle models: expected nothing, load FILE DEVICE, pin MODEL DEVICE, unpin "
                    "MODEL DEVICE, unload, unload MODEL or unload MODEL DEVICE, got ",
                    engine::quote(engine::join(words, " ")), "."));
  if (words.size() > 1) body.set("model", words[1]);
  if (has_device) body.set("device", words[2]);
  return server.post(cat("/v1/models/", action), body);
}

}  // namespace

int list_models(const Request& request, Output& output) {
  const Settings& settings = request.settings;
  const ServerClient server(settings.server);
  const Json answer =
      request.operands.empty() ? server.get("/v1/models") : change_models(request.operands, server);
  if (tell_json(answer, settings, output)) return kExitDone;
  if (const Json* models = answer.find("models"))
    write_models(*models, output);
  else
    output.write(cat("given back: ", bytes_text(answer.at("bytes")), "\n"));
  return kExitDone;
}

namespace {

void change_device(const Request& request, const ServerClient& server, Output& output) {
  static const std::vector<std::string> kActions = {"enable", "disable", "drain"};
  const std::vector<std::string>& words = request.operands;
  if (words.size() != 2 || std::ranges::find(kActions, words[0]) == kActions.end())
    throw Error(
        Code::invalid_argument,
        cat("heddle devices: expected enable, disable or drain, and the id of a device, got ",
            engine::quote(engine::join(words, " ")), "."));
  const Json device = server.post(cat("/v1/devices/", url_segment(words[1]), "/", words[0]));
  if (!tell_json(device, request.settings, output))
    output.write(cat(device.at("id").as_string(), " ", device.at("service").as_string(), "\n"));
}

}  // namespace

int list_server_devices(const Request& request, Output& output) {
  const ServerClient server(request.settings.server);
  if (!request.operands.empty()) {
    change_device(request, server, output);
    return kExitDone;
  }
  const Json answer = server.get("/v1/devices");
  if (tell_json(answer, request.settings, output)) return kExitDone;
  Table table;
  table.row({"id", "kind", "memory", "free", "ours", "others", "state", "jobs", "name"});
  for (const Json& device : answer.at("devices").as_array()) {
    const Json& memory = device.at("memory");
    const std::string& service = device.at("service").as_string();
    table.row({device.at("id").as_string(), device.at("kind").as_string(),
               bytes_text(memory.at("total")), bytes_text(memory.at("free")),
               bytes_text(memory.at("ours")), bytes_text(memory.at("others")),
               service == "enabled" ? device.at("state").as_string() : service,
               cat(device.at("jobs").size()),
               text_or(device.at("trouble"), device.at("name").as_string())});
  }
  output.write(table.text());
  return kExitDone;
}

}  // namespace heddle::cli
