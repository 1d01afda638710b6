#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/interrupt.h"
#include "engine/cli/reporter.h"
#include "engine/cli/variants.h"

namespace heddle::cli {
namespace {

using core::cat;
using core::Json;

std::unique_ptr<Reporter> make_reporter(const Settings& settings, Output& output) {
  if (settings.json) return make_json(output);
  if (settings.quiet) return make_quiet();
  if (::isatty(STDERR_FILENO) == 0) return make_lines(output);
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return make_bars(output, known ? size.ws_col : 80);
}

// Log messages and bars share the terminal, so that messages go through the reporter while it
// lives.
class LogThrough {
 public:
  explicit LogThrough(Reporter& reporter) {
    core::set_log_sink([&reporter](core::Level level, std::string_view message) {
      reporter.message(cat(core::level_name(level), ": ", message));
    });
  }
  ~LogThrough() { core::set_log_sink({}); }
  LogThrough(const LogThrough&) = delete;
};

void print_json_error(Output& output, int code, const std::vector<std::string>& trail,
                      std::string_view message) {
  Json frames = Json::array();
  for (const std::string& frame : trail) frames.push(frame);
  Json json = Json::object();
  json.set("event", "error").set("code", core::code_name(static_cast<core::Code>(code)));
  json.set("trail", std::move(frames)).set("message", message);
  output.write(cat(core::write_json(json), "\n"));
}

// Every variant is checked before the first starts: nobody wants to learn after an hour that the
// last one cannot run. A problem that all of them have is told once. Returns whether all can run.
bool check_all(const Engine& engine, const Variants& variants, bool json, Reporter& reporter,
               Output& output) {
  std::vector<std::string> errors, warnings;
  const auto add = [](std::vector<std::string>& all, const std::vector<std::string>& found) {
    for (const std::string& problem : found)
      if (std::ranges::find(all, problem) == all.end()) all.push_back(problem);
  };
  for (std::size_t run = 0; run < variants.count(); ++run) {
    const Engine::Problems problems = engine.check(variants.workflow(run));
    add(errors, problems.errors);
    add(warnings, problems.warnings);
  }
  for (const std::string& error : errors) reporter.message(error);
  for (const std::string& warning : warnings) reporter.message(cat("warning: ", warning));
  if (json)
    for (const std::string& error : errors)
      print_json_error(output, static_cast<int>(core::Code::invalid_argument), {}, error);
  return errors.empty();
}

class Runs {
 public:
  Runs(const Request& request, Output& output, Reporter& reporter)
      : request_(request), output_(output), reporter_(reporter), interrupt_([&reporter] {
          reporter.message("stopping after the steps under way; once more quits at once");
        }) {}

  int run_all() {
    const Settings& settings = request_.settings;
    Engine engine(settings.engine);
    const auto warn = [&](const std::string& text) { reporter_.message(cat("warning: ", text)); };
    const Variants variants(engine, engine.load(request_.workflow), settings, warn);
    if (!check_all(engine, variants, settings.json, reporter_, output_)) return kExitUsage;
    for (std::size_t run = 0; run < variants.count(); ++run) {
      reporter_.run_begins({run + 1, variants.count(), variants.label(run)});
      const int code = run_one(engine, variants.workflow(run),
                               numbered(settings.trace, run + 1, variants.count()));
      if (code != kExitDone) return code;
      const bool is_last = run + 1 == variants.count();
      if (interrupt_.came() && !is_last) return interrupted();
    }
    return kExitDone;
  }

 private:
  int run_one(Engine& engine, const Workflow& flow, std::filesystem::path trace) {
    StartOptions options;
    options.trace = std::move(trace);
    options.observer = [this](const Event& event) { reporter_.event(event); };
    const auto began = std::chrono::steady_clock::now();
    Run run =
        engine.start(flow, std::move(options));  // what it throws is wrong before anything runs
    interrupt_.watch(run);
    try {
      const Results results = run.wait();
      interrupt_.forget();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
      reporter_.run_done(results, seconds.count());
      return kExitDone;
    } catch (const EngineError& error) {
      interrupt_.forget();
      reporter_.run_stopped();
      const bool is_cancelled = error.code() == static_cast<int>(core::Code::cancelled);
      return is_cancelled && interrupt_.came() ? interrupted() : failed(error);
    }
  }

  int failed(const EngineError& error) {
    reporter_.message(error.what());
    if (request_.settings.json)
      print_json_error(output_, error.code(), error.trail(), error.what());
    return kExitFailed;
  }

  int interrupted() {
    reporter_.message("interrupted");
    if (request_.settings.json) output_.write("{\"event\":\"interrupted\"}\n");
    return kExitInterrupted;
  }

  const Request& request_;
  Output& output_;
  Reporter& reporter_;
  Interrupt interrupt_;
};

}  // namespace

int run_workflow(const Request& request, Output& output) {
  const std::unique_ptr<Reporter> reporter = make_reporter(request.settings, output);
  const LogThrough log(*reporter);
  for (const std::string& warning : request.settings.warnings)
    reporter->message(cat("warning: ", warning));
  return Runs(request, output, *reporter).run_all();
}

}  // namespace heddle::cli
