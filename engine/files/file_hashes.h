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
#include "engine/base/mapped_file.h"

namespace heddle::engine {

class FileHashes {
 public:
  // Nanoseconds since 1970, by the clock that dates files; empty: the system's.
  using Clock = std::function<std::int64_t()>;

  // `memory`: the file where hashes are remembered, in a folder that is there. One that is damaged
  // counts as empty, and one that cannot be written costs time only: then there is a warning.
  // Empty: they are remembered as long as this object lives.
  explicit FileHashes(std::filesystem::path memory, Clock clock = {});

  struct Found {
    Hash128 hash;
    FileIdentity identity;  // of the file when it had this content: any change after that shows
  };
  // Throws not_found or io with the path, also for a file that changes while it is read.
  Found find(const std::filesystem::path& path);
  Hash128 of(const std::filesystem::path& path) { return find(path).hash; }

  std::uint64_t bytes_read() const { return bytes_read_; }  // by this object, of files it hashed

 private:
  using Table = std::map<std::string, Found>;  // by canonical path

  Hash128 read(const std::filesystem::path& path);
  Table load() const;
  void save(const Table& added) const;

  const std::filesystem::path memory_;
  const Clock clock_;
  std::atomic<std::uint64_t> bytes_read_{0};
  Guarded<Table> known_;
};

}  // namespace heddle::engine
