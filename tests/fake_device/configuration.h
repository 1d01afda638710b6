// What a fake device is like: from the options it is opened with, over those of the environment.
// Plain values.
//
//   HEDDLE_FAKE_COUNT=4           how many there are, else "count" of HEDDLE_FAKE, else 64
//   HEDDLE_FAKE='{"count": 4}'    the same options as those of open(); those of open() count where
//                                 both say something
//
//   "count"           indices from here on are refused
//   "memory"          bytes, or "16GiB" (16GiB)
//   "flops"           a second (1e12)
//   "bandwidth"       bytes a second of its own memory (1e12)
//   "launch_seconds"  before an op begins (1e-6)
//   "name"            the model; by it measured costs are kept ("fake", with its speed where a list
//                     says that speeds differ)
//   "op_seconds"      {"linear": 0.5, "*": 0.1}: what an op takes altogether; else launch_seconds +
//                     max(flops, bytes)
//   "pace"            seconds of the true clock that a stream's ops take, for each simulated one,
//                     where what ends first matters to the engine (0)
//   "links"           {"host": {"bandwidth": 16e9, "latency": 1e-5},
//                      "peer": {"bandwidth": 64e9, "latency": 5e-6},
//                      "pairs": {"0-1": {...}, "0>2": {...}, "host-3": {...}},
//                      "pageable": {...}}
//                     "-": both directions, ">": one; "pageable": instead of what is said of a link
//                     when it is from host memory that no fake has pinned
//   "peer"            false: no copies between fakes but through the host (true)
//   "peer_reads"      true: kernels read the memory of other fakes, over the link between them
//                     (false)
//   "kernels", "compute", "threads"  as of the cpu device that computes ("all", its choice, 1)
//   "shares"          false: it shares no memory with other processes (true)
//   "shared_piece"    bytes of which memory that is shared takes a multiple ("1 B")
//   "integrated"      true: it says that it is part of the host's processor (false). What is told
//                     before a device is opened comes from the environment's options only
//   "shuffle"         a seed: work runs as late and in as random an order as its streams and events
//                     allow, by the threads that wait for it. The order depends on the seed and on
//                     what was enqueued
//
// memory, flops, bandwidth, launch_seconds, name and integrated may be lists, an element for each
// device; the last one counts for the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "clock.h"
#include "heddle/abi/device.h"

namespace heddle::fake {

struct LinkSpeed {
  double bytes_per_second = 0, latency_seconds = 0;
  double seconds(std::uint64_t bytes) const {
    return latency_seconds + double(bytes) / bytes_per_second;
  }
};

// Over 15 members: options of a test, each by itself and with a default.
struct Configuration {
  std::string name = "fake";
  std::uint64_t memory = std::uint64_t{16} << 30, shared_piece = 1;
  double flops = 1e12, bandwidth = 1e12, launch_seconds = 1e-6, pace = 0;
  std::map<std::string, double> op_seconds;
  LinkSpeed host{16e9, 1e-5}, peer{64e9, 5e-6};
  std::map<LinkKey, LinkSpeed> pairs;
  std::optional<LinkSpeed> pageable;  // what differs from `host`
  bool peer_copies = true, peer_reads = false, integrated = false, shares = true;
  std::string kernels = "all", compute;  // compute empty: the cpu device's choice
  std::int64_t threads = 1;
  std::optional<std::uint64_t> shuffle;

  LinkSpeed link(std::uint32_t from, std::uint32_t to) const;
  // What an op takes by op_seconds: by its name, by its name without the revision, by "*".
  std::optional<double> fixed_seconds(const std::string& op) const;
};

inline constexpr std::uint32_t kDefaultCount = 64;

// Throws device::Error(HEDDLE_INVALID_ARGUMENT) naming the option.
Configuration read_configuration(const heddle_host* host, std::uint32_t index,
                                 const heddle_value* options);

// "FAKE-00000000-0000-0000-0000-00000000001f" and "0000:1f:00.0" for fake:31, the domain counting
// on from 256.
std::string uuid_of(std::uint32_t index);
std::string pci_address_of(std::uint32_t index);

// How many devices the environment says there are.
std::uint32_t environment_count(const heddle_host* host);

}  // namespace heddle::fake
