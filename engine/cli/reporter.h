// What the user sees of a run: bars on a terminal, plain lines in a log file, JSON for programs, or
// nothing but warnings. One reporter serves all runs of a call, one after the other.
//
// event() comes on a run's threads, one at a time; message() from any thread; everything else from
// the thread that waits for the runs.
#pragma once

#include <heddle/engine.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "engine/cli/output.h"

namespace heddle::cli {

// One run of the call.
struct RunHeading {
  std::size_t number = 1, count = 1;
  std::string label;  // "Noise.seed=3"; empty when there is one run only
};

class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void run_begins(const RunHeading&) = 0;
  virtual void event(const Event&) = 0;
  virtual void run_done(const Results&, double seconds) = 0;
  // Whatever is moving on the screen stands still from now on; a run that failed ends so.
  virtual void run_stopped() {}
  // A warning or a notice, without a line end.
  virtual void message(std::string_view text) = 0;
};

// "3 Encode", or with a title of its own "3 'draw it' (Encode)".
std::string node_label(const Event& event);

// "run 2 of 8: Noise.seed=3"; empty when there is one run only.
std::string heading_text(const RunHeading& heading);

// The files written, the seconds of every stage and what to remark, as a run ends by saying; under
// its heading when there are several.
std::string summary(const RunHeading& heading, const Results& results, double seconds);

std::unique_ptr<Reporter> make_bars(Output& output, int terminal_columns);
std::unique_ptr<Reporter> make_lines(Output& output);
std::unique_ptr<Reporter> make_json(Output& output);
std::unique_ptr<Reporter> make_quiet();

}  // namespace heddle::cli
