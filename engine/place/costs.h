// The rates of the cost model (program/cost_model.h) for the devices there are: measured figures
// from a costs file, else what a device says of itself, else a guess by its kind. Figures belong to
// a device *model*, so equal devices share them. Values; pure.
//
// The file is JSON; all members are optional, unknown ones of the top level are kept:
//   { "devices": { "NVIDIA H200": { "flops_per_second": 6.0e14,
//                                   "attention_flops_per_second": 5.0e14,
//                                   "fp8_flops_per_second": 1.0e15,
//                                   "int8_flops_per_second": 1.0e15,
//                                   "half_time_flops_per_second": 6.5e14,
//                                   "bytes_per_second": 4.0e12,
//                                   "launch_seconds": 4.0e-6 } },
//     "links": { "NVIDIA H200 -> host": { "bytes_per_second": 5.0e10, "latency_seconds": 1.0e-5 },
//                "NVIDIA H200 -> NVIDIA H200": { ... } } }
//
//   flops_per_second            of GEMMs in the compute type, as large as a model's
//   fp8_flops_per_second        of fp8 GEMMs, where the device has such
//   int8_flops_per_second       of GEMMs of int8 matrices, where it multiplies whole numbers
//   half_time_flops_per_second  of GEMMs where the device rests as long as it works: more if power
//                               is what limits it
//   bytes_per_second            of the device's own memory, read and written together
//   launch_seconds              of one op, however small
//
// A link is one direction. "host" is host memory as it comes, "pinned host" is host memory that is
// pinned for the device.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/json.h"
#include "engine/place/topology.h"
#include "engine/program/cost_model.h"

namespace heddle::engine {

struct DeviceCosts {
  double flops_per_second = 0, bytes_per_second = 0, launch_seconds = 0;  // 0: unknown
  double attention_flops_per_second = 0, fp8_flops_per_second = 0;        // 0: unknown
  double half_time_flops_per_second = 0;                                  // 0: as always
  double int8_flops_per_second = 0;                                       // 0: unknown
};
struct LinkCosts {
  double bytes_per_second = 0, latency_seconds = 0;  // 0: unknown
};

// The end of a link that weights are streamed from, in every step; "host" is where they are loaded
// from once, and where what no memory may be pinned for passes.
inline constexpr const char* kPinnedHost = "pinned host";

struct Costs {
  std::map<std::string, DeviceCosts, std::less<>> devices;         // by model
  std::map<std::pair<std::string, std::string>, LinkCosts> links;  // by the models of both ends
  Json rest = Json::object();                                      // what others keep in the file
};

// Throws invalid_argument "costs.json:3:5: ..." for what is not such a file: wrong types, unknown
// members, figures that are not positive.
Costs read_costs(std::string_view text, std::string_view name);
std::string write_costs(const Costs& costs);

// Every figure filled in, for the devices of a topology.
class Prices {
 public:
  Prices(const Topology& topology, const Costs& costs);

  const Topology& topology() const { return topology_; }
  // Of a device of the topology, or kHostSide: what runs in host memory without one.
  const DeviceRates& rates(std::uint32_t device) const {
    return device == kHostSide ? host_ : rates_[device];
  }
  // One direction of a link; kNothingToCopy where both ends are one memory.
  CopyRate copy_rate(std::uint32_t from, std::uint32_t to) const;
  double transfer_seconds(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) const {
    return copy_rate(from, to).seconds(bytes);
  }
  // How two devices are linked, with the figures of copy_rate() filled in.
  LinkFacts link(std::uint32_t from, std::uint32_t to) const { return topology_.link(from, to); }

 private:
  void fill_links(const Costs& costs);
  void fill_rates_from_host(const Topology& facts, const Costs& costs);

  Topology topology_;  // with all links filled in
  std::vector<DeviceRates> rates_;
  DeviceRates host_;
};

}  // namespace heddle::engine
