// A whole file as read-only memory. Weights are never read into buffers of their own: their bytes
// are pages of this mapping, which the kernel loads when they are touched and drops when memory is
// short. One owner (move-only; wrap it in a shared_ptr<const MappedFile> to share); const functions
// may be called by any thread.
//
// The mapping lives on after the file is deleted or replaced by rename. A file that is truncated in
// place while mapped ends the process with SIGBUS when a lost page is touched; nothing short of
// copying prevents that, so programs that change a mapped file have to write a new one and rename
// it. touch(), read() and read_direct() notice it and throw instead.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace heddle::core {

// Tells whether two openings saw the same file in the same state.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;        // bytes
  std::int64_t modified_ns = 0;  // since 1970
  auto operator<=>(const FileIdentity&) const = default;
};

// Without opening the file. Throws Error (not_found, io) with the path.
FileIdentity identify_file(const std::filesystem::path& path);

std::uint64_t page_bytes();  // what the kernel maps and drops at a time

enum class Advice { will_need, dont_need, sequential };

class MappedFile {
 public:
  // Throws Error with the path and the system's reason: not_found, io; invalid_argument when it is
  // not a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }  // as it was given
  const FileIdentity& identity() const { return identity_; }
  std::uint64_t size() const { return identity_.size; }

  // All of the file; empty for an empty file. Valid as long as this object, or what it was moved
  // to.
  std::span<const std::byte> bytes() const {
    return {data_, static_cast<std::size_t>(identity_.size)};
  }

  // Tells the kernel how these bytes will be used, in whole pages. What lies outside the file is
  // ignored, and so is a kernel that does not listen: advice never fails. dont_need gives pages
  // back; touched again, they are read again.
  void advise(std::uint64_t offset, std::uint64_t size, Advice advice) const;

  // Reads these bytes from the disk into the pages of the mapping, unless they are there already.
  // REQUIRES: they lie in the file. Throws Error(io) with the path and the offset when the file has
  // become shorter since it was opened, or cannot be read.
  void touch(std::uint64_t offset, std::uint64_t size) const;
  // The same into memory of the caller; the mapping's pages stay as they are.
  void read(std::uint64_t offset, std::span<std::byte> into) const;
  // The same past the kernel's own copies, for what only passes through: it takes less time, and
  // pushes nothing out. The file may end within `into`. False: it cannot be read so, and nothing
  // was read. REQUIRES: offset, address and size are multiples of page_bytes().
  bool read_direct(std::uint64_t offset, std::span<std::byte> into) const;
  // Asks the kernel to forget these bytes, in whole pages: it has them to save reading them again,
  // which takes memory from those who need it more. Pages that a mapping holds stay.
  void forget(std::uint64_t offset, std::uint64_t size) const;

 private:
  int direct_descriptor() const;
  [[noreturn]] void throw_unreadable(std::uint64_t offset, std::uint64_t size, int error) const;

  std::filesystem::path path_;
  FileIdentity identity_;
  const std::byte* data_ = nullptr;  // nullptr for an empty file
  int descriptor_ = -1;
  static constexpr int kNotOpened = -1, kRefused = -2;
  mutable std::atomic<int> direct_{kNotOpened};  // a descriptor for read_direct()
};

}  // namespace heddle::core
