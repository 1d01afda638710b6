// The devices a plan may use, their memory, and the links between them. What placement knows of the
// world: a value, from the devices' own answers or from a test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/device_names.h"
#include "heddle/abi/value.h"

namespace heddle::engine {

inline constexpr std::uint32_t kHostSide = 0xffffffff;  // host memory, as an end of a link

struct DeviceFacts {
  std::string name;   // "cuda:1"
  std::string kind;   // "cuda"
  std::string model;  // "NVIDIA H200": equal models compute equal bytes at equal speed
  bool host_visible = false;
  heddle_dtype compute = HEDDLE_F32;
  std::uint64_t memory_total = 0;  // bytes
  std::uint64_t memory_free =
      0;  // bytes that are not used by others; of host memory, this device's share
  std::uint64_t budget = 0;     // bytes that may be used here, if they are there; 0: all that is
  double flops_per_second = 0;  // of a large GEMM; 0: unknown
  double bytes_per_second = 0;  // of its own memory; 0: unknown
  std::string left_out;  // why nothing new is placed here: it has failed; empty: it may be used
  bool pins = false;     // host memory can be pinned for copies to it
  std::string uuid = {}, pci_address = {};  // by which people may name it; empty: none
  bool captures_other_streams = false;      // two branches of a model can run on it at a time
};

inline DeviceNames names_of(const DeviceFacts& device) {
  return {device.name, device.kind, device.uuid, device.pci_address};
}

struct LinkFacts {
  // direct: by copies. peer: kernels on each side read the other's memory, too.
  enum class Kind { same, peer, direct, through_host } kind = Kind::through_host;
  double bytes_per_second = 0;  // one direction; 0: unknown
  double latency_seconds = 0;

  bool is_direct() const { return kind == Kind::direct || kind == Kind::peer; }
};

struct Topology {
  std::vector<DeviceFacts> devices;
  std::vector<LinkFacts> links;  // (devices + 1)^2, row by row: from, to; the last of each is host
                                 // memory. Empty: nothing is known
  std::uint64_t pinned_bytes = 0;  // of weights that are streamed may be pinned in host memory
  bool lends_memory = true;        // idle devices may hold weights that others stream

  LinkFacts link(std::uint32_t from, std::uint32_t to) const {
    if (from == to) return {LinkFacts::Kind::same, 0, 0};
    const std::size_t n = devices.size();
    const auto side = [n](std::uint32_t d) { return d == kHostSide ? n : std::size_t(d); };
    if (!links.empty()) return links[side(from) * (n + 1) + side(to)];
    const auto visible = [this](std::uint32_t d) {
      return d == kHostSide || devices[d].host_visible;
    };
    return {visible(from) && visible(to) ? LinkFacts::Kind::same : LinkFacts::Kind::through_host, 0,
            0};
  }
};

// What a text such as "cuda:1", "cuda", "auto", a UUID or "cpu:0,cpu:1" names (device_names.h).
struct NamedDevices {
  std::vector<std::uint32_t> devices;  // of the topology, in the order of the text; each once
  bool is_list = false;  // several were named one by one, so all of them are meant; a kind means
                         // any of its devices, "auto" any at all
  std::vector<std::string> repeated;  // names that stood there twice
};

// Devices that are left out are not among them. Throws not_found naming the devices there are,
// invalid_argument for a list with nothing in it, io where all that is named is left out.
NamedDevices find_devices(std::string_view text, const Topology& topology);

// "cuda:0, cuda:1"; kHostSide is "host".
std::string device_name(std::uint32_t device, const Topology& topology);
std::string device_names(const std::vector<std::uint32_t>& devices, const Topology& topology);
std::string all_device_names(const Topology& topology);
// "gpu:1 is left out: it failed ...", for each that is.
std::vector<std::string> left_out_texts(const Topology& topology);

// Bytes that may be used on a device; a device that says nothing of its memory has enough.
inline std::uint64_t usable_bytes(const DeviceFacts& device) {
  const std::uint64_t endless = ~std::uint64_t(0) >> 1;
  return std::min(device.budget == 0 ? endless : device.budget,
                  device.memory_total == 0 ? endless : device.memory_free);
}

// Whether weights that find no room on a device are worth streaming: not where they would only go
// from host memory to host memory, and nobody said that there is less of it to use.
inline bool has_limit(const DeviceFacts& device) {
  return device.budget != 0 || (!device.host_visible && device.memory_total != 0);
}

}  // namespace heddle::engine
