// Hashes of the whole content of files, for keys that last longer than a process. A file is read
// once and its hash remembered on disk, by all that the system says of it: path, device, inode,
// size, and the times of the last change of content and of state. The last one is the system's own:
// no copy, rename or touch can set it back, so a file that was replaced by another of the same size
// and date is read again. Whoever changes the content with the clock set back deceives it.
//
// A sample of the content would be cheaper, but models that were trained a little further, or in a
// few tensors, differ in a few places only: what is kept under such a key would be taken for the
// wrong model. Thread-safe; several processes may use one file of hashes.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "engine/base/guarded.h"
#include "engine/base/hash.h"

namespace heddle::core {

class FileHashes {
 public:
  // Nanoseconds since 1970, by the clock that dates files; empty: the system's.
  using Clock = std::function<std::int64_t()>;

  // `memory`: the file where hashes are remembered, in a folder that is there. One that is damaged
  // counts as empty, and one that cannot be written costs time only: then there is a warning.
  explicit FileHashes(std::filesystem::path memory, Clock clock = {});

  // Throws not_found or io with the path.
  Hash128 of(const std::filesystem::path& path);

  std::uint64_t bytes_read() const { return bytes_read_; }  // by this object, of files it hashed

 private:
  struct State {  // of a file, as the system tells it
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  struct Known {
    State state;
    Hash128 hash;
  };
  using Table = std::map<std::string, Known>;  // by canonical path

  static State state_of(const std::filesystem::path& path);
  Hash128 read(const std::filesystem::path& path);
  Table load() const;
  void save(const Table& added) const;

  const std::filesystem::path memory_;
  const Clock clock_;
  std::atomic<std::uint64_t> bytes_read_{0};
  Guarded<Table> known_;
};

}  // namespace heddle::core
