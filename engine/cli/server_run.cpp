#include "engine/cli/server_run.h"

#include <algorithm>
#include <map>
#include <random>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/cli/interrupt.h"
#include "engine/cli/served_file.h"
#include "engine/cli/server_client.h"
#include "engine/cli/server_uploads.h"
#include "engine/cli/submission.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Json;

// Jobs are cancelled over a network.
constexpr std::chrono::milliseconds kServerGrace{5000};

std::string random_id() {
  std::random_device random;
  std::string id = "run-";
  for (int i = 0; i < 32; ++i) id += "0123456789abcdef"[random() % 16];
  return id;
}

std::string text_in(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

double number_in(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr && value->is_number() ? value->as_double() : 0;
}

// The events of a job, as those of a run here.
class JobEvents {
 public:
  JobEvents(const Json& prompt, std::size_t run, Reporter& reporter)
      : run_(run), reporter_(reporter) {
    for (const Json::Member& node : prompt.members()) {
      const Json* meta = node.value.find("_meta");
      nodes_[node.key] = {text_in(node.value, "class_type"),
                          meta == nullptr ? "" : text_in(*meta, "title")};
    }
  }

  void take(std::string_view type, const Json& data) {
    using Kind = Event::Kind;
    const std::string id = text_in(data, "node"), device = text_in(data, "device");
    std::string text = text_in(data, "message");
    Node& node = nodes_[id];
    Event event{};
    if (type == "node_started") {
      event.kind = Kind::node_started;
      node.class_type = text_in(data, "class_type");
    } else if (type == "node_progress") {
      event.kind = Kind::node_progress;
      event.fraction = number_in(data, "fraction");
    } else if (type == "node_done" || type == "node_cached") {
      event.kind = type == "node_done" ? Kind::node_done : Kind::node_cached;
      event.seconds = number_in(data, "seconds");
      Stage stage{id, node.class_type, event.seconds};
      stage.cached = type == "node_cached";
      stages_.push_back(std::move(stage));
    } else if (type == "node_shows") {
      event.kind = Kind::node_shows;
      const Json* shown = data.find("shown");
      if (shown == nullptr || shown->is_null()) return;
      text = engine::write_json(*shown);
    } else if (type == "node_blocked") {
      event.kind = Kind::node_blocked;
    } else if (type == "warning") {
      event.kind = Kind::warning;
    } else if (type == "run_waiting") {
      event.kind = Kind::run_waiting;
      event.bytes = std::uint64_t(number_in(data, "bytes"));
    } else {
      return;  // of the job, or for others
    }
    event.node = event.display_node = event.real_node = id;
    event.class_type = node.class_type;
    event.title = node.title;
    event.device = device;
    event.text = text;
    reporter_.event(run_, event);
  }

  void wrote(const std::string& id, const std::string& file) {
    Event event{};
    event.kind = Event::Kind::file_written;
    event.node = event.display_node = event.real_node = id;
    event.class_type = nodes_[id].class_type;
    event.title = nodes_[id].title;
    event.text = file;
    reporter_.event(run_, event);
  }

  const std::vector<Stage>& stages() const { return stages_; }

 private:
  struct Node {
    std::string class_type, title;
  };
  const std::size_t run_;
  Reporter& reporter_;
  std::map<std::string, Node> nodes_;
  std::vector<Stage> stages_;
};

class ServerRuns {
 public:
  ServerRuns(const Request& request, Output& output, Reporter& reporter)
      : settings_(request.settings),
        flow_(request.flow),
        output_(output),
        reporter_(reporter),
        server_(settings_.server),
        interrupt_([this] { cancel(); }, kServerGrace) {}

  int run_all() {
    const std::vector<std::string> jobs = submit();
    int code = kExitDone;
    bool is_interrupted = false;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const RunHeading heading{i + 1, jobs.size(),
                               jobs.size() == 1 ? "" : submission_.sweep.label(i, false)};
      const std::optional<int> ended = run(jobs[i], heading);
      is_interrupted = is_interrupted || !ended;
      if (code == kExitDone) code = ended.value_or(kExitDone);
    }
    if (is_interrupted) {
      reporter_.message("interrupted");
      if (settings_.json) output_.write("{\"event\":\"interrupted\"}\n");
      code = kExitInterrupted;
    }
    return code;
  }

 private:
  // Told apart by a batch of their own, so that a signal finds them whenever it comes.
  std::vector<std::string> submit() {
    std::vector<std::string> ids;
    try {
      submission_ = submission_of(flow_, "the workflow", settings_, server_);
      submission_.body.set("batch", batch_);
      upload_inputs(submission_.body, settings_, server_);
      interrupt_.before_runs();
      const Json answer = server_.post("/v1/jobs", submission_.body);
      for (const Json& warning : answer.at("warnings").as_array())
        reporter_.message(cat("warning: ", warning.as_string()));
      for (const Json& job : answer.at("jobs").as_array()) ids.push_back(job.at("id").as_string());
    } catch (const engine::Error& error) {
      if (settings_.json)
        write_json_error(output_, engine::code_name(error.code()), {}, error.full(), std::nullopt);
      throw;
    }
    if (interrupt_.came()) cancel();  // it may have come too early to find them
    return ids;
  }

  // On the thread that watches for signals, too.
  void cancel() {
    reporter_.message("cancelling; once more quits at once");
    Json which = Json::object();
    try {
      ServerClient(settings_.server).post("/v1/cancel", which.set("batch", batch_));
    } catch (const std::exception& error) {
      reporter_.message(cat("the jobs are not cancelled: ", error.what()));
    }
  }

  // The exit code that the job asks for; nothing when it was interrupted.
  std::optional<int> run(const std::string& id, const RunHeading& heading) {
    reporter_.run_begins(heading);
    const Json begun = server_.get(job_path(id));
    JobEvents events(begun.at("workflow").at("prompt"), heading.number, reporter_);
    const Json job = server_.wait_for(
        id, [&](std::string_view type, const Json& data) { events.take(type, data); });
    const std::string& state = job.at("state").as_string();
    if (state == "done") {
      const RunReport report = fetch(job, events);
      reporter_.run_done(heading, report, seconds_of(job));
      return kExitDone;
    }
    reporter_.run_stopped(heading.number);
    if (state == "cancelled" && interrupt_.came()) return std::nullopt;
    const Json& error = job.at("error");
    const std::string message =
                          error.is_null() ? "the job was cancelled" : text_in(error, "message"),
                      which = heading_text(heading);
    reporter_.message(which.empty() ? message : cat(which, ": ", message));
    if (settings_.json) tell_error(error, message, heading.number);
    return kExitFailed;
  }

  static double seconds_of(const Json& job) {
    return (number_in(job, "ended_ms") - number_in(job, "started_ms")) / 1000;
  }

  void tell_error(const Json& error, const std::string& message, std::size_t run) {
    std::string code = error.is_null() ? "cancelled" : text_in(error, "code");
    std::ranges::replace(code, '_', ' ');
    std::vector<std::string> trail;
    if (const Json* frames = error.is_null() ? nullptr : error.find("trail"))
      for (const Json& frame : frames->as_array()) trail.push_back(frame.as_string());
    write_json_error(output_, code, trail, message, run);
  }

  // What was made, with the files of the output folder written here.
  RunReport fetch(const Json& job, JobEvents& events) {
    const std::filesystem::path folder = output_folder(settings_);
    RunReport report;
    std::map<std::string, std::map<std::string, Json>> shown;  // by node, by kind
    for (const Json& made : job.at("outputs").as_array()) {
      const std::string node = text_in(made, "node"), kind = text_in(made, "kind");
      Json item = Json::object();
      if (const Json* value = made.find("value")) {
        item = *value;
      } else {
        std::string name = text_in(made, "filename");
        const std::string subfolder = text_in(made, "subfolder"), type = text_in(made, "type");
        if (type == "output") {
          const std::filesystem::path file =
              download_file(server_, text_in(made, "url"), folder, subfolder, name);
          name = file.filename().string();
          report.files.push_back(file.string());
          events.wrote(node, file.string());
        }
        item.set("filename", name).set("subfolder", subfolder).set("type", type);
      }
      Json& list = shown[node].try_emplace(kind, Json::array()).first->second;
      list.push(std::move(item));
    }
    Json ui = Json::object();
    for (auto& [node, kinds] : shown) {
      Json of_node = Json::object();
      for (auto& [kind, list] : kinds) of_node.set(kind, std::move(list));
      ui.set(node, std::move(of_node));
    }
    report.ui = engine::write_json(ui);
    report.stages = events.stages();
    return report;
  }

  const Settings& settings_;
  const Workflow& flow_;
  Output& output_;
  Reporter& reporter_;
  const ServerClient server_;
  const std::string batch_ = random_id();
  Submission submission_;
  Interrupt interrupt_;
};

}  // namespace

int run_on_server(const Request& request, Output& output, Reporter& reporter) {
  return ServerRuns(request, output, reporter).run_all();
}

}  // namespace heddle::cli
