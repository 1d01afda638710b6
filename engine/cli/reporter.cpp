#include "engine/cli/reporter.h"

#include <algorithm>
#include <map>

#include "engine/base/guarded.h"
#include "engine/base/json.h"
#include "engine/base/text.h"

namespace heddle::cli {
namespace {

using engine::cat;

// One line when a node starts, one when it is done, and one for each tenth of the way; with the
// number of the run when there are several.
class Lines final : public Reporter {
 public:
  explicit Lines(Output& output) : output_(output) {}

  void run_begins(const RunHeading& heading) override {
    if (heading.count == 1) return;
    state_.lock()->has_several = true;
    to_stderr(heading_text(heading));
  }

  void event(std::size_t run, const Event& event) override {
    const std::string prefix = state_.lock()->has_several ? cat("run ", run, ": ") : "";
    const std::string label = cat(prefix, node_label(event));
    switch (event.kind) {
      case Event::Kind::node_started:
        return to_stderr(cat(label, ": started on ", event.device));
      case Event::Kind::node_progress:
        return progress(run, event, label);
      case Event::Kind::node_done:
        return to_stderr(cat(label, ": done in ", format_seconds(event.seconds)));
      case Event::Kind::node_cached:
        return to_stderr(cat(label, ": unchanged, not run again"));
      case Event::Kind::file_written:
        return to_stderr(cat(label, ": wrote ", engine::printable(event.text)));
      case Event::Kind::node_blocked:
        return to_stderr(cat(label, ": blocked: ", engine::printable(event.text)));
      case Event::Kind::warning:
        return message(cat("warning: ", event.node.empty() ? prefix : cat(label, ": "),
                           engine::printable(event.text)));
      case Event::Kind::node_waiting:
        return to_stderr(cat(label, ": waits until the runs before it have written"));
      case Event::Kind::run_waiting:
        return to_stderr(cat(prefix, "waits for ", engine::printable(event.text)));
      case Event::Kind::picture_sent:
        return to_stderr(cat(label, ": sent a picture of ", engine::format_bytes(event.text.size()),
                             ", which is not kept here"));
      case Event::Kind::preview:
      case Event::Kind::checkpoint_written:  // every few steps
      case Event::Kind::node_shows:          // the summary has it
        return;
    }
  }

  void run_done(const RunHeading& heading, const RunReport& report, double seconds) override {
    output_.write(summary(heading, report, seconds));
  }

  void message(std::string_view text) override { to_stderr(cat("heddle: ", text)); }

 private:
  void progress(std::size_t run, const Event& event, const std::string& label) {
    const int tenth = static_cast<int>(event.fraction * 10);
    {
      auto state = state_.lock();
      int& shown = state->tenths[{run, std::string(event.node)}];
      if (tenth <= shown || tenth >= 10) return;
      shown = tenth;
    }
    to_stderr(cat(label, ": ", tenth * 10, " %", event.text.empty() ? "" : " ",
                  engine::printable(event.text)));
  }

  struct State {
    bool has_several = false;
    std::map<std::pair<std::size_t, std::string>, int> tenths;  // reported last, by run and node
  };
  Output& output_;
  engine::Guarded<State> state_;
};

class Quiet final : public Reporter {
 public:
  void run_begins(const RunHeading&) override {}
  void event(std::size_t, const Event& event) override {
    if (event.kind == Event::Kind::warning)
      message(cat("warning: ", engine::printable(event.text)));
  }
  void run_done(const RunHeading&, const RunReport&, double) override {}
  void message(std::string_view text) override { to_stderr(cat("heddle: ", text)); }
};

// The texts that nodes show, which have no other place to be seen.
std::string shown_texts(const RunReport& report) {
  std::map<std::string, std::string> class_of;
  for (const Stage& stage : report.stages) class_of[stage.node] = stage.class_type;
  const engine::Json ui = engine::parse_json(report.ui, "ui");
  std::string shown;
  for (const engine::Json::Member& node : ui.members()) {
    const engine::Json* texts = node.value.find("text");
    if (texts == nullptr) continue;
    for (const engine::Json& text : texts->as_array())
      shown += cat(
          engine::printable(cat(node.key, " ", class_of[node.key])), ": ",
          engine::printable_lines(text.is_string() ? text.as_string() : engine::write_json(text)),
          "\n");
  }
  return shown;
}

}  // namespace

RunReport report_of(const Results& results) {
  return {results.files(), results.stages(), results.ui(), results.remarks()};
}

std::string node_label(const Event& event) {
  if (event.title.empty() || event.title == event.class_type)
    return engine::printable(cat(event.node, " ", event.class_type));
  return cat(engine::printable(event.node), " ", engine::quote(event.title), " (",
             engine::printable(event.class_type), ")");
}

std::string heading_text(const RunHeading& heading) {
  if (heading.count == 1) return "";
  return engine::printable(cat("run ", heading.number, " of ", heading.count, ": ", heading.label));
}

std::string summary(const RunHeading& heading, const RunReport& report, double seconds) {
  Table table;
  for (const Stage& stage : report.stages)
    table.row({"", stage.cached ? "unchanged" : format_seconds(stage.seconds),
               cat(stage.node, " ", stage.class_type)});
  table.row({"", format_seconds(seconds), "in all"});
  std::string text = heading_text(heading);
  if (!text.empty()) text += "\n";
  for (const std::string& file : report.files) text += cat("wrote ", engine::printable(file), "\n");
  text += shown_texts(report);
  text += table.text();
  for (const std::string& remark : report.remarks) text += cat(engine::printable(remark), "\n");
  return text;
}

std::unique_ptr<Reporter> make_lines(Output& output) { return std::make_unique<Lines>(output); }
std::unique_ptr<Reporter> make_quiet() { return std::make_unique<Quiet>(); }

}  // namespace heddle::cli
