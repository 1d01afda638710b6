// Graphs of tasks drawn at random, for tests and benches of scheduling. The same seed gives the
// same graph.
#pragma once

#include <algorithm>
#include <random>

#include "engine/place/list_schedule.h"

namespace heddle::test {

// Devices with a direct link between any two.
inline engine::Topology equal_devices(std::size_t count, double bytes_per_second,
                                      double latency_seconds) {
  engine::Topology topology;
  for (std::size_t d = 0; d < count; ++d)
    topology.devices.push_back(
        {"gpu:" + std::to_string(d), "gpu", "Card", false, HEDDLE_F32, 0, 0, 0, 1e12, 1e11});
  for (std::size_t from = 0; from <= count; ++from)
    for (std::size_t to = 0; to <= count; ++to)
      topology.links.push_back(
          {from == to ? engine::LinkFacts::Kind::same : engine::LinkFacts::Kind::direct,
           bytes_per_second, latency_seconds});
  return topology;
}

inline double draw(std::mt19937& random, double low, double high) {
  // Not a distribution of the library: those differ from one to the other.
  return low + (high - low) * double(random()) / double(std::mt19937::max());
}

inline engine::Prices random_prices(std::mt19937& random, std::size_t devices) {
  // One after the other: compilers differ in which argument of a call they evaluate first.
  const double latency_seconds = draw(random, 0.001, 0.1);
  const double bytes_per_second = draw(random, 1e8, 1e10);
  return {equal_devices(devices, bytes_per_second, latency_seconds), {}};
}

// Each task reads up to three of the ones before it; its time differs from device to device by up
// to a factor of two.
inline engine::TaskGraph random_tasks(std::mt19937& random, std::size_t count,
                                      std::uint32_t devices) {
  engine::TaskGraph graph;
  for (std::uint32_t t = 0; t < count; ++t) {
    engine::Task task;
    const double seconds = draw(random, 0.1, 2);
    for (std::uint32_t d = 0; d < devices; ++d)
      task.options.push_back({d, {d}, seconds * draw(random, 0.7, 1.4), {}});
    const std::uint32_t reads = t == 0 ? 0 : random() % std::min<std::uint32_t>(4, t + 1);
    for (std::uint32_t r = 0; r < reads; ++r) {
      const std::uint32_t near = std::min<std::uint32_t>(t, 8);
      task.inputs.push_back({t - 1 - std::uint32_t(random() % near), false, false});
    }
    graph.tasks.push_back(std::move(task));
    graph.values.push_back({t, std::uint64_t(draw(random, 0, 5e8)), 0xffffffff});
  }
  return graph;
}

}  // namespace heddle::test
