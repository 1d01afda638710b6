// heddle/isolation.hpp - plugins whose nodes run in processes of their own. Part of
// heddle/engine.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

// A crash, an exit or a hang of such a plugin fails the run that called its node, with the plugin
// and the signal named, and nothing else. Nodes alone: a plugin that brings models, devices or
// kernels is refused. Its nodes work in host memory.
struct Isolation {
  // By the name of the file, with or without ".so", by its path or by the plugin's id. An engine
  // throws for a name that is none of a plugin's.
  std::vector<std::string> plugins;
  double call_seconds = 0;         // a call that works longer is ended; 0: no limit
  std::uint64_t memory_bytes = 0;  // address space of a worker, beyond what it starts with; 0: no
                                   // limit
  bool sandbox = false;            // no network and no other programs
};

}  // namespace heddle
