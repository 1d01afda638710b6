// What an engine tells of its devices and their memory (Engine::devices()). Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

// What of a memory is held for something.
struct MemoryUsage {
  // "weights", "staging ring", "activations", "values", "staging", "workspaces", "captured graphs"
  std::string kind;
  std::string owner;  // of weights: the model; else mostly empty
  std::uint64_t bytes = 0;
  std::uint64_t pinned = 0;  // of them: in use now. The rest could be evicted
};

// What went for want of room, since the engine began.
struct Eviction {
  // "free chunks", "merged weights", "file bytes", "weights without use" (of runs under way),
  // "cached values", "weights in use" (that runs under way load again)
  std::string what;
  std::uint64_t times = 0, bytes = 0;
};

// What was copied from one memory to another since the engine began, by kind of device; "host":
// host memory.
struct Transfers {
  std::string from, to;
  std::uint64_t copies = 0, bytes = 0;
};

// A budget and who uses it.
struct MemoryReport {
  std::uint64_t budget = 0;       // bytes; 0: there is none
  std::uint64_t headroom = 0;     // that stay free for other programs
  std::uint64_t taken = 0;        // by this engine
  std::uint64_t reserved = 0;     // claimed by work that is about to begin
  std::uint64_t available = 0;    // that could be taken without evicting anything
  std::uint64_t peak = 0;         // the most that was taken at a time
  std::vector<MemoryUsage> held;  // most bytes first; what is taken and not held lies free in pools
  // Of host memory: bytes of weights read from their files, for the first time, and again.
  std::uint64_t read_first = 0, read_again = 0;
  std::vector<Eviction> evictions;  // of this memory; those that there were
};

struct DeviceLink {
  std::string to;               // a device's id, or "host" for host memory
  std::string kind;             // "same": nothing is copied, "direct", "through host"
  double bytes_per_second = 0;  // one direction, there; 0: unknown
  double latency_seconds = 0;
};

// Over 15 members: a report, in which nothing depends on anything else.
struct DeviceInfo {
  std::string id, name, kind, location, compute;
  std::uint64_t memory_total = 0, memory_free = 0, memory_ours = 0,
                memory_others = 0;  // bytes; others: of other programs
  unsigned threads = 0;
  std::vector<DeviceLink> links;  // to every other device that is open, then to the host
  std::string trouble;    // what it says when it cannot be asked; then there are no links, and no
                          // memory is free
  std::string state;      // "healthy", "degraded": nothing new is placed here, "probing"
  unsigned failures = 0;  // runs in a row that it failed
  std::string last_failure;  // empty: none since it was well
  double probe_seconds = 0;  // degraded: until the next run probes it
  MemoryReport memory;
  std::string uuid, pci_address;       // empty: none
  std::string architecture;            // "compute capability 9.0"; empty: nothing is told
  std::vector<std::string> fallbacks;  // what it lacks and what is done instead, a sentence each
  bool integrated = false;             // part of the processor: its memory is host memory
  // Whether its driver holds something for it: not before its first work, nor when it is drained.
  bool has_context = true;
  std::vector<Transfers> transfers;  // that it made; those that there were
  std::string service;  // "enabled", "disabled", "draining", "drained": see Engine::drain()
};

}  // namespace heddle
