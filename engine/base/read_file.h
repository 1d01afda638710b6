// Files that are read whole into memory: what is small, and was written by somebody else. A limit
// for each kind of file, so that neither a device without an end nor a file of holes takes the
// memory of the machine. Weights are mapped instead (mapped_file.h). Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace heddle::engine {

struct FileKind {
  std::string_view name;         // in errors: "a workflow"
  std::uint64_t most_bytes = 0;  // that one may have
  bool may_be_pipe = false;      // "heddle run <(generate)": only where nobody else may wait for it
};

// Far above any that is sound: pictures may stand in a workflow as text.
inline constexpr FileKind kWorkflowFile{"a workflow", 64 << 20, true};
inline constexpr FileKind kConfigurationFile{"a configuration file", 16 << 20};
inline constexpr FileKind kCostsFile{"a file of measured costs", 16 << 20};
inline constexpr FileKind kHashesFile{"a list of hashes", 64 << 20};
inline constexpr FileKind kIndexFile{"an index of shards", 64 << 20};
inline constexpr FileKind kTimelineFile{"a timeline", std::uint64_t{4} << 30};

// The whole file, whose end is where reading finds it: a file may grow or shrink meanwhile. Devices
// and sockets are never opened, pipes only where they may be one; then this waits for whoever
// writes. Throws Error with the path: invalid_argument for what is no file of this kind or too
// large, not_found, io.
std::string read_file(const std::filesystem::path& path, const FileKind& kind);

}  // namespace heddle::engine
