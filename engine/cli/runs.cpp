#include "engine/cli/runs.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <optional>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/guarded.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/base/thread.h"
#include "engine/cli/interrupt.h"
#include "engine/cli/side_by_side.h"
#include "engine/cli/variants.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Json;
using Clock = std::chrono::steady_clock;

std::vector<std::string> names_of_working(const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> names;
  for (const DeviceInfo& device : devices)
    if (device.trouble.empty()) names.push_back(device.id);
  return names;
}

class Runs {
 public:
  Runs(const Request& request, Output& output, Reporter& reporter)
      : settings_(request.settings),
        checkpoint_(request.checkpoint),
        output_(output),
        reporter_(reporter),
        interrupt_([&reporter] { reporter.message("stopping; once more quits at once"); }),
        engine_(settings_.engine),
        variants_(engine_, engine_.adopt(request.flow), settings_,
                  [&](const std::string& text) { reporter_.message(cat("warning: ", text)); }) {}

  int run_all() {
    if (!check_all()) return kExitUsage;
    interrupt_.before_runs();
    const std::vector<std::string> devices = names_of_working(engine_.devices());
    device_count_ = devices.size();
    state_.lock()->beside = SideBySide(devices);
    int code = kExitDone;
    bool is_interrupted = false;
    for (std::size_t run = 0; run < variants_.count(); ++run) {
      start_until_over(run);
      if (run == begun_) {
        is_interrupted = true;
        break;
      }
      const std::optional<int> ended = report(run);
      is_interrupted = is_interrupted || !ended;
      if (code == kExitDone) code = ended.value_or(kExitDone);
    }
    if (is_partial_ && code == kExitDone) code = kExitUsage;
    if (is_interrupted) code = interrupted();
    // What is left is to free memory, which takes its time.
    if (output_.failure() == 0) {
      set_exit_code(code);
      done();
    }
    return code;
  }

 private:
  struct Outcome {
    std::optional<Results> results;
    std::optional<EngineError> error;
    int code = kExitFailed;  // of the program, when the run failed
    double seconds = 0;
  };
  struct State {
    SideBySide beside{{}};
    std::map<std::size_t, Outcome> over;  // by run, until it is reported
  };

  // Every variant is checked before the first starts: nobody wants to learn after an hour that the
  // last one cannot run. A problem that all of them have is reported once. Returns whether all can
  // run, if only for some of their outputs.
  bool check_all() {
    std::vector<std::string> lacking, errors, warnings, answers;
    bool all_can_run = true;
    const auto add = [](std::vector<std::string>& all, const std::vector<std::string>& found) {
      for (const std::string& problem : found)
        if (std::ranges::find(all, problem) == all.end()) all.push_back(problem);
    };
    for (std::size_t run = 0; run < variants_.count(); ++run) {
      const Engine::Problems problems = engine_.check(variants_.workflow(run));
      const auto others = problems.errors.begin() + static_cast<std::ptrdiff_t>(problems.lacking);
      add(lacking, {problems.errors.begin(), others});
      add(errors, {others, problems.errors.end()});
      add(warnings, problems.warnings);
      if (problems.errors.empty()) continue;
      all_can_run = all_can_run && !problems.outputs.empty();
      add(answers, {problems.answer});
    }
    errors.insert(errors.begin(), lacking.begin(), lacking.end());
    is_partial_ = !errors.empty() && all_can_run;
    // Programs are told all of them.
    for (const std::string& error : errors)
      print_json_error(static_cast<int>(engine::Code::invalid_argument), {}, error, std::nullopt);
    const auto shown = [&](std::vector<std::string>& all, std::size_t whole = 0) {
      return settings_.json ? std::move(all) : engine::clip_lines(std::move(all), whole);
    };
    if (settings_.json)
      for (const std::string& answer : answers)
        output_.write(cat("{\"event\":\"refused\",\"answer\":", answer, "}\n"));
    for (const std::string& error : shown(errors, lacking.size())) reporter_.message(error);
    if (is_partial_) reporter_.message("warning: only the outputs that need none of this are made");
    for (const std::string& warning : shown(warnings)) reporter_.message(cat("warning: ", warning));
    return all_can_run;
  }

  RunHeading heading_of(std::size_t run) const {
    return {run + 1, variants_.count(), variants_.label(run)};
  }

  // Comes back when the run is over, or when it will never be: interrupted, and not begun.
  void start_until_over(std::size_t run) {
    for (;;) {
      const auto may_start = [&](const State& state) {
        return begun_ < variants_.count() && !interrupt_.came() && state.beside.may_start();
      };
      {
        auto state = state_.lock();
        state.wait(changed_, [&](const State& s) {
          return may_start(s) || s.over.contains(run) || run == begun_;
        });
        if (!may_start(*state)) return;
      }
      start_next();
    }
  }

  void start_next() {
    const std::size_t run = begun_++;
    reporter_.run_begins(heading_of(run));
    StartOptions options;
    options.trace = numbered(settings_.trace, run + 1, variants_.count());
    // Runs too few for all devices are better spread over several each.
    options.among_many =
        variants_.count() - run + state_.lock()->beside.computing() >= device_count_ &&
        variants_.count() > 1;
    options.writes_after = last_started_;
    options.partly = true;
    options.memory_wait_seconds = settings_.memory_wait;
    if (settings_.checkpoints.every != 0) {
      options.checkpoint = numbered(settings_.checkpoints.file, run + 1, variants_.count());
      options.checkpoint_every = settings_.checkpoints.every;
      options.checkpoint_note = settings_.checkpoints.options;
    }
    options.observer = [this, run](const Event& event) {
      reporter_.event(run + 1, event);
      if (event.kind == Event::Kind::node_waiting)
        change([run](State& state) { state.beside.waits(run); });
    };
    const Clock::time_point began = Clock::now();
    try {
      Run started = checkpoint_ ? engine_.resume(*checkpoint_, std::move(options))
                                : engine_.start(variants_.workflow(run), std::move(options));
      last_started_ = started.id();
      change([&](State& state) { state.beside.begins(run, started.devices()); });
      interrupt_.watch(started);
      Outcomes over;
      over[run].code = kExitFailed;
      waiters_.emplace(
          run, engine::start_thread("the thread that waits for a run",
                                    [this, run, began, started, over = std::move(over)]() mutable {
                                      wait(run, began, started, std::move(over));
                                    }));
    } catch (const EngineError& error) {
      if (variants_.count() == 1) throw;
      Outcome outcome;
      outcome.error = error;
      outcome.code = exit_code_before_run(error);
      change([&](State& state) { state.over.emplace(run, std::move(outcome)); });
    }
  }

  using Outcomes = std::map<std::size_t, Outcome>;  // by run

  // On a thread of its own. `over`: the run's alone, made before, so that it is reported in any
  // case.
  void wait(std::size_t run, Clock::time_point began, Run started, Outcomes over) noexcept {
    Outcome& outcome = over.at(run);
    try {
      outcome.results = started.wait();
    } catch (const EngineError& error) {
      outcome.error = error;
    } catch (const std::exception&) {  // then tell() knows what it was
    }
    outcome.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    try {
      interrupt_.forget(started.id());
    } catch (const std::exception&) {  // it is cancelled once more, in vain
    }
    change([&](State& state) {
      state.beside.ends(run);
      state.over.merge(over);
    });
  }

  template <class F>
  void change(F&& how) {
    how(*state_.lock());
    changed_.notify_all();
  }

  // The exit code that the run asks for; nothing when it was interrupted.
  std::optional<int> report(std::size_t run) {
    waiters_.erase(run);
    const Outcome outcome = std::move(state_.lock()->over.extract(run).mapped());
    const RunHeading heading = heading_of(run);
    if (outcome.results) {
      reporter_.run_done(heading, report_of(*outcome.results), outcome.seconds);
      return kExitDone;
    }
    reporter_.run_stopped(run + 1);
    const EngineError error = outcome.error.value_or(
        EngineError(static_cast<int>(engine::Code::out_of_memory), {}, "host memory is exhausted"));
    if (error.code() == static_cast<int>(engine::Code::cancelled) && interrupt_.came())
      return std::nullopt;
    const std::string which = heading_text(heading);
    reporter_.message(which.empty() ? error.what() : cat(which, ": ", error.what()));
    print_json_error(error.code(), error.trail(), error.what(), run + 1);
    return outcome.code;
  }

  void print_json_error(int code, const std::vector<std::string>& trail, std::string_view message,
                        std::optional<std::size_t> run) {
    if (settings_.json)
      write_json_error(output_, engine::code_name(static_cast<engine::Code>(code)), trail, message,
                       run);
  }

  int interrupted() {
    reporter_.message("interrupted");
    for (std::size_t run = 0; run < begun_ && settings_.checkpoints.every != 0; ++run) {
      const std::filesystem::path file =
          numbered(settings_.checkpoints.file, run + 1, variants_.count());
      std::error_code ignored;
      if (std::filesystem::exists(file, ignored))
        reporter_.message(cat("heddle resume ", file.string(), " goes on with it"));
    }
    if (settings_.json) output_.write("{\"event\":\"interrupted\"}\n");
    return kExitInterrupted;
  }

  const Settings& settings_;
  const std::optional<RunCheckpoint>& checkpoint_;  // to go on from
  Output& output_;
  Reporter& reporter_;
  Interrupt interrupt_;  // before other threads are made
  Engine engine_;
  const Variants variants_;
  std::size_t device_count_ = 0;
  std::size_t begun_ = 0;
  bool is_partial_ = false;  // some outputs cannot run, and are left out
  std::uint64_t last_started_ = 0;
  engine::Guarded<State> state_;
  std::condition_variable changed_;
  std::map<std::size_t, std::jthread> waiters_;  // by run
};

}  // namespace

int run_all(const Request& request, Output& output, Reporter& reporter) {
  return Runs(request, output, reporter).run_all();
}

}  // namespace heddle::cli
