// The devices a plan may use, their memory, and the links between them. What placement knows of the world: a value, from the
// devices' own answers or from a test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/abi/value.h"

namespace heddle::core {

inline constexpr std::uint32_t kHostSide = 0xffffffff;  // host memory, as an end of a link

struct DeviceFacts {
  std::string name;   // "cuda:1"
  std::string kind;   // "cuda"
  std::string model;  // "NVIDIA H200": equal models compute equal bytes at equal speed
  bool host_visible = false;
  heddle_dtype compute = HEDDLE_F32;
  std::uint64_t memory_total = 0, memory_free = 0;  // bytes
  std::uint64_t budget = 0;                         // bytes that may be used here; 0: all that is free
  double flops_per_second = 0;                      // of a large product; 0: unknown
  double bytes_per_second = 0;                      // of its own memory; 0: unknown
};

struct LinkFacts {
  enum class Kind { same, direct, through_host } kind = Kind::through_host;
  double bytes_per_second = 0;  // one direction; 0: unknown
  double latency_seconds = 0;
};

struct Topology {
  std::vector<DeviceFacts> devices;
  std::vector<LinkFacts> links;  // (devices + 1)^2, row by row: from, to; the last of each is host memory. Empty: nothing is known

  LinkFacts link(std::uint32_t from, std::uint32_t to) const {
    if (from == to) return {LinkFacts::Kind::same, 0, 0};
    const std::size_t n = devices.size();
    const auto side = [n](std::uint32_t d) { return d == kHostSide ? n : std::size_t(d); };
    if (!links.empty()) return links[side(from) * (n + 1) + side(to)];
    const auto visible = [this](std::uint32_t d) { return d == kHostSide || devices[d].host_visible; };
    return {visible(from) && visible(to) ? LinkFacts::Kind::same : LinkFacts::Kind::through_host, 0, 0};
  }
};

}  // namespace heddle::core
