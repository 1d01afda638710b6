// Tasks over devices: which option each task takes, so that all are done soonest. List scheduling
// by upward ranks, then bounded improvement; deterministic, ties to the lowest index. Knows nothing
// of nodes or models. Pure.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/place/costs.h"

namespace heddle::engine {

struct TaskOption {
  std::uint32_t home =
      kHostSide;  // where the outputs are; kHostSide: waits for nobody but its inputs
  std::vector<std::uint32_t> devices;  // busy while it runs; empty on the host
  double seconds = 0;
  // Things to be brought first, once for all tasks that share the number: weights on devices.
  std::vector<std::pair<std::uint32_t, double>> loads;
};

struct TaskInput {
  std::uint32_t value = 0;
  bool to_host = false;  // needed in host memory
  bool stays = false;    // not moved at all
};

struct TaskValue {
  std::uint32_t task = 0;  // who makes it
  std::uint64_t bytes = 0;
  std::uint32_t held = 0xffffffff;  // stands where this earlier value stands
};

struct Task {
  std::vector<TaskOption> options;  // not empty; in order of preference among equals
  std::vector<TaskInput> inputs;
};

// Tasks are in a topological order: a task's inputs are made by earlier ones.
struct TaskGraph {
  std::vector<Task> tasks;
  std::vector<TaskValue> values;
  std::uint32_t load_count = 0;
  std::vector<double> busy_seconds;  // by device: until then others use it; empty: all are free
};

struct TaskSchedule {
  std::vector<std::uint32_t> options;  // by task
  std::vector<std::uint32_t> order;    // of tasks: which goes first where several could
  double seconds = 0;                  // until the last is done
};

// The order in which tasks are taken: by what is still to come after them. Topological.
std::vector<std::uint32_t> rank_order(const TaskGraph& graph, const Prices& prices);

// When everything is done if the tasks take these options, in this order. A device runs one task at
// a time; a link carries one value at a time, beside the computing; a value is brought to a place
// once.
double simulate(const TaskGraph& graph, const std::vector<std::uint32_t>& order,
                const std::vector<std::uint32_t>& options, const Prices& prices);

// Tries a bounded number of other choices, so its time is linear in tasks and inputs. Several
// devices are used only where that gains.
TaskSchedule schedule(const TaskGraph& graph, const Prices& prices);

}  // namespace heddle::engine
