// A folder of values that outlive the process, each in a file named by its key; see value_file.h.
// Files are written whole and replaced in one step, so several processes may use one folder: they
// read each other's files, and of two that write the same one the last stays. When the folder's
// limit is passed, what was used longest ago goes, by the files' dates. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/hash.h"
#include "engine/files/value_file.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

class DiskCache {
 public:
  // The folder is made when it is first written to.
  DiskCache(std::filesystem::path folder, std::uint64_t limit_bytes);

  // Tensors in what `make` gives. A file that is damaged, or not one of ours, is as none, with a
  // warning.
  std::optional<std::vector<Value>> find(const Hash128& key, const MakeTensor& make = {}) const;

  // REQUIRES: every tensor is readable by the host, and finished. Values that no file can hold, and
  // ones above the limit, are left out; what fails is a warning, as nothing but time is lost.
  void add(const Hash128& key, std::span<const Value> values) const;

 private:
  std::filesystem::path path_of(const Hash128& key) const;
  void make_room(std::uint64_t bytes) const;  // so that so many more are within the limit

  const std::filesystem::path folder_;
  const std::uint64_t limit_bytes_;
};

}  // namespace heddle::engine
