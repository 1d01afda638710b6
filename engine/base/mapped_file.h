// A whole file as read-only memory. Weights are never read into buffers of their own: their bytes
// are pages of this mapping, which the kernel loads when they are touched and drops when memory is
// short. One owner (move-only; wrap it in a shared_ptr<const MappedFile> to share); const functions
// may be called by any thread.
//
// The mapping lives on after the file is deleted or replaced by rename. Of a file that is truncated
// in place while it is mapped, the lost pages read as zeros (page_guard.h, by a handler for
// SIGBUS): whoever has read bytes() asks check() before what was made of them leaves. touch(),
// read() and read_direct() throw by themselves. A file that is overwritten in place changes under
// its readers, which only its identity tells afterwards, so programs that change a file write a new
// one and rename it.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "engine/base/page_guard.h"

namespace heddle::engine {

// Tells whether two openings saw the same file in the same state. The time of the last change of
// state is the system's own: no copy, rename or touch can set it back.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;  // bytes
  std::int64_t modified_ns =
      0;  // since 1970: of the last change of content, as somebody may have set it
  std::int64_t changed_ns = 0;  // of content or state
  auto operator<=>(const FileIdentity&) const = default;
};

// Without opening the file. Throws Error (not_found, io) with the path.
FileIdentity identify_file(const std::filesystem::path& path);
// The same for keys: any change after this shows in the identity. A file that was changed within
// the last tick of the system's clock could be changed once more at the same time, so the tick is
// waited for (a few milliseconds).
FileIdentity identify_file_for_key(const std::filesystem::path& path);

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
  // Equal numbers of two mappings of the same identity: they have the same bytes. A file that has
  // lost pages and is opened again has another number.
  std::uint64_t opening() const { return opening_; }

  // All of the file; empty for an empty file. Valid as long as this object, or what it was moved
  // to. Zeros where the file has lost pages: see check().
  std::span<const std::byte> bytes() const {
    return {data_, static_cast<std::size_t>(identity_.size)};
  }

  // To be asked after bytes() were read. Throws Error(io) with the path and the sizes when some of
  // them, anywhere in the file, were not there. It stays so: the file has to be opened again.
  void check() const {
    if (is_damaged()) throw_lost();
  }
  bool is_damaged() const { return guard_.has_lost_pages(); }
  // The same for what others were given to read, who fail at a lost page in their own way. Throws
  // when the file is shorter now than it was.
  void check_size() const;

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
  [[noreturn]] void throw_gone(std::uint64_t begin, std::uint64_t end,
                               std::uint64_t size_now) const;
  [[noreturn]] void throw_lost() const;

  std::filesystem::path path_;
  FileIdentity identity_;
  std::uint64_t opening_ = lost_page_count();
  const std::byte* data_ = nullptr;  // nullptr for an empty file
  int descriptor_ = -1;
  PageGuard guard_;
  static constexpr int kNotOpened = -1, kRefused = -2;
  mutable std::atomic<int> direct_{kNotOpened};  // a descriptor for read_direct()
};

}  // namespace heddle::engine
