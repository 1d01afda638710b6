// Several runs at once of graphs that share nodes.
#pragma once

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/run/run_fixture.h"

namespace heddle::test {

// Besides the runs of a test there is always one that does nothing: so what takes no time is
// shared, too.
struct SharedRuns : TwoDevices {
  using TwoDevices::TwoDevices;
  engine::SingleFlight::Member another{environment.flights};

  // A node whose outputs are kept: the same as every other one of this number and these inputs.
  static engine::NodeIndex add(Flow& flow, const std::string& id, std::int64_t number,
                               Action action, const std::vector<TestInput>& inputs = {},
                               Place place = Place::host) {
    const engine::NodeIndex n = flow.add(id, place, inputs, std::move(action), 0);
    flow.graph.nodes[n].extra.emplace_back("number", engine::make_value(number));
    return n;
  }

  // Comes back when so many nodes wait for another run; throws after very long.
  void await_waiting(std::size_t count) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (environment.flights.waiting() != count) {
      if (std::chrono::steady_clock::now() > until)
        throw engine::Error(engine::Code::internal, "the others do not wait");
      std::this_thread::yield();
    }
  }
};

// A run on a thread of its own, of which one output is wanted.
class OneRun {
 public:
  OneRun(SharedRuns& runs, const Flow& flow, engine::NodeIndex wanted)
      : thread_([this, &runs, &flow, wanted] {
          failure_ = failure_of([&] {
            const engine::RunResult result =
                engine::execute(flow.request({{wanted, 0}}), runs.environment, runs.quiet, control);
            value_ = engine::get_int(*result.fetched.at({wanted, 0}));
            for (const engine::NodeTiming& timing : result.timings) cached_ += timing.cached;
          });
        }) {}

  // Of these wait() has to be called before.
  std::int64_t value() const { return value_.value_or(-1); }
  const std::string& failure() const { return failure_; }
  int cached() const { return cached_; }
  void wait() { thread_.join(); }

  engine::RunControl control;

 private:
  std::optional<std::int64_t> value_;
  std::string failure_;
  int cached_ = 0;
  std::jthread thread_;
};

}  // namespace heddle::test
