// One JSON object a line on stdout, for programs. Every object has "event" and "run" (the number,
// from 1); the rest is there where it means something: node, class, title, device, fraction,
// seconds, bytes, files, ui (what the node shows; of run_done: of each node).
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/cli/reporter.h"

namespace heddle::cli {
namespace {

using engine::Json;

std::string_view name_of(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::node_started:
      return "node_started";
    case Event::Kind::node_progress:
      return "node_progress";
    case Event::Kind::node_done:
      return "node_done";
    case Event::Kind::node_cached:
      return "node_cached";
    case Event::Kind::file_written:
      return "file_written";
    case Event::Kind::warning:
      return "warning";
    case Event::Kind::node_waiting:
      return "node_waiting";
    case Event::Kind::preview:
      return "preview";
    case Event::Kind::node_shows:
      return "node_shows";
    case Event::Kind::node_blocked:
      return "node_blocked";
    case Event::Kind::run_waiting:
      return "run_waiting";
    case Event::Kind::checkpoint_written:
      return "checkpoint_written";
    case Event::Kind::picture_sent:
      return "picture_sent";
  }
  return "unknown";
}

void set_text(Json& json, const char* key, std::string_view text) {
  if (!text.empty()) json.set(key, text);
}

class JsonLines final : public Reporter {
 public:
  explicit JsonLines(Output& output) : output_(output) {}

  void run_begins(const RunHeading& heading) override {
    Json json = begin("run_started", heading.number);
    json.set("of", heading.count);
    set_text(json, "label", heading.label);
    write(json);
  }

  void event(std::size_t run, const Event& event) override {
    Json json = begin(name_of(event.kind), run);
    set_text(json, "node", event.node);
    if (!event.parent_node.empty()) {
      set_text(json, "display", event.display_node);
      set_text(json, "parent", event.parent_node);
    }
    set_text(json, "class", event.class_type);
    set_text(json, "title", event.title);
    set_text(json, "device", event.device);
    const bool is_message = event.kind == Event::Kind::warning ||
                            event.kind == Event::Kind::node_blocked ||
                            event.kind == Event::Kind::run_waiting;
    if (event.kind == Event::Kind::node_progress) json.set("fraction", event.fraction);
    if (event.kind == Event::Kind::node_done) json.set("seconds", event.seconds);
    if (event.kind == Event::Kind::run_waiting) json.set("bytes", event.bytes);
    if (event.kind == Event::Kind::file_written) {
      json.set("files", std::move(Json::array().push(event.text)));
    } else if (event.kind == Event::Kind::picture_sent) {
      json.set("bytes", event.text.size());
    } else if (event.kind == Event::Kind::node_shows) {
      json.set("ui", engine::parse_json(event.text, "ui"));
    } else {
      set_text(json, is_message ? "message" : "note", event.text);
    }
    write(json);
  }

  void run_done(const RunHeading& heading, const RunReport& report, double seconds) override {
    Json files = Json::array();
    for (const std::string& file : report.files) files.push(file);
    Json stages = Json::array();
    for (const Stage& stage : report.stages)
      stages.push(std::move(Json::object()
                                .set("node", stage.node)
                                .set("class", stage.class_type)
                                .set("seconds", stage.seconds)
                                .set("cached", stage.cached)));
    Json remarks = Json::array();
    for (const std::string& remark : report.remarks) remarks.push(remark);
    write(begin("run_done", heading.number)
              .set("seconds", seconds)
              .set("files", std::move(files))
              .set("ui", engine::parse_json(report.ui, "ui"))
              .set("stages", std::move(stages))
              .set("remarks", std::move(remarks)));
  }

  void message(std::string_view text) override { to_stderr(engine::cat("heddle: ", text)); }

 private:
  static Json begin(std::string_view event, std::size_t run) {
    Json json = Json::object();
    json.set("event", event).set("run", run);
    return json;
  }
  void write(const Json& json) { output_.write(engine::cat(engine::write_json(json), "\n")); }

  Output& output_;
};

}  // namespace

void write_json_error(Output& output, std::string_view code, const std::vector<std::string>& trail,
                      std::string_view message, std::optional<std::size_t> run) {
  Json frames = Json::array(), json = Json::object();
  for (const std::string& frame : trail) frames.push(frame);
  json.set("event", "error").set("code", code);
  if (run) json.set("run", *run);
  json.set("trail", std::move(frames)).set("message", message);
  output.write(engine::cat(engine::write_json(json), "\n"));
}

std::unique_ptr<Reporter> make_json(Output& output) { return std::make_unique<JsonLines>(output); }

}  // namespace heddle::cli
