// heddle/isolation.hpp - plugins whose nodes run in processes of their own. Part of
// heddle/engine.hpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace heddle {

// A crash, an exit or a hang of such a plugin fails the run that called its node, with the plugin
// and the signal named, and nothing else. Nodes alone: a plugin that brings models, devices or
// kernels is refused. Its nodes work on devices that share memory with other processes, else in
// host memory.
struct Isolation {
  // By the name of the file, with or without ".so", by its path or by the plugin's id. An engine
  // throws for a name that is none of a plugin's.
  std::vector<std::string> plugins = {};
  double call_seconds = 0;         // a call that works longer is ended; 0: no limit
  std::uint64_t memory_bytes = 0;  // address space of a worker, beyond what it starts with; 0: no
                                   // limit
  bool sandbox = false;            // no network and no other programs
  // Nodes in Python: a folder of packs as ComfyUI's custom_nodes, or a pack (a folder with an
  // __init__.py, or a file, with NODE_CLASS_MAPPINGS or comfy_entrypoint). Each pack runs in
  // processes of its own, under the limits above.
  std::vector<std::filesystem::path> python_nodes = {};
  std::filesystem::path python = {};  // the interpreter, 3.9 or later; empty: that of $VIRTUAL_ENV,
                                      // else python3 of $PATH
};

}  // namespace heddle
