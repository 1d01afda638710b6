// Lets all nodes of all runs share the mapping and the parsed header of a file. It holds files
// weakly: one is unmapped when the last checkpoint that uses it is gone, and mapped anew when it
// was changed or replaced, or pages of it were lost, in the meantime. Thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <memory>

#include "engine/base/guarded.h"
#include "engine/files/checkpoint.h"

namespace heddle::engine {

class CheckpointCache {
 public:
  // As open_checkpoint(path), with files shared. Files are the same when canonical path and
  // identity (base/mapped_file.h) are.
  Checkpoint open(const std::filesystem::path& path);

 private:
  std::shared_ptr<const TensorFile> file(const std::filesystem::path& path);

  using Files =
      std::map<std::filesystem::path, std::weak_ptr<const TensorFile>>;  // by canonical path
  Guarded<Files> files_;
};

}  // namespace heddle::engine
