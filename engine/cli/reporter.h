// What the user sees of the runs: bars on a terminal, plain lines in a log file, JSON for programs,
// or nothing but warnings. One reporter serves all runs of a call, several at the same time; a run
// goes by its number, from 1.
//
// event() comes on the runs' threads, one at a time for each run; message() from any thread;
// everything else from one thread, run_done() and run_stopped() in the order of the runs.
#pragma once

#include <heddle/engine.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cli/output.h"

namespace heddle::cli {

// One run of the call.
struct RunHeading {
  std::size_t number = 1, count = 1;
  std::string label;  // "Noise.seed=3"; empty when there is one run only
};

// What a run has made, wherever it ran.
struct RunReport {
  std::vector<std::string> files;
  std::vector<Stage> stages;  // as they ended
  std::string ui;             // JSON, as Results::ui()
  std::vector<std::string> remarks;
};
RunReport report_of(const Results& results);

class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void run_begins(const RunHeading&) = 0;
  virtual void event(std::size_t run, const Event&) = 0;
  virtual void run_done(const RunHeading&, const RunReport&, double seconds) = 0;
  // A run that failed ends so: nothing of it moves on the screen from now on.
  virtual void run_stopped(std::size_t run) { (void)run; }
  // A warning or a notice, without a line end.
  virtual void message(std::string_view text) = 0;
};

// "3 Encode", or with a title of its own "3 'draw it' (Encode)".
std::string node_label(const Event& event);

// "run 2 of 8: Noise.seed=3"; empty when there is one run only.
std::string heading_text(const RunHeading& heading);

// The files written, the texts shown, the seconds of every stage and what to remark, as a run ends
// by saying; under its heading when there are several.
std::string summary(const RunHeading& heading, const RunReport& report, double seconds);

// The line of --json for a failure. `run`: from 1; nothing: before any ran.
void write_json_error(Output& output, std::string_view code, const std::vector<std::string>& trail,
                      std::string_view message, std::optional<std::size_t> run);

std::unique_ptr<Reporter> make_bars(Output& output, int terminal_columns);
std::unique_ptr<Reporter> make_lines(Output& output);
std::unique_ptr<Reporter> make_json(Output& output);
std::unique_ptr<Reporter> make_quiet();

}  // namespace heddle::cli
