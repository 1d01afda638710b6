// Memory that several processes map: memfd, without a name and of a sealed size, so that nobody who
// has it can take pages from under the others. It is gone with its last mapping. One owner.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/descriptor.h"

namespace heddle::engine {

class SharedMemory {
 public:
  // Who may map it to write: this mapping alone, whatever a process does with its descriptor (as
  // far as the kernel knows how, from 5.1), or whoever has the descriptor of the owner.
  enum class Writers { owner, others };
  // Zeros. Throws out_of_memory, io. What others write has no pages before they do: whoever writes
  // first makes them, which costs more than the writing.
  SharedMemory(std::uint64_t bytes, Writers writers);
  // What another process has made; takes the descriptor, and closes it. Writing to what is not
  // writable ends the process.
  SharedMemory(int descriptor, std::uint64_t bytes, bool is_writable);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_.number(); }
  // Another descriptor, by which nobody can write; the caller's to close. Throws io.
  int read_only_descriptor() const;

 private:
  void map(bool is_writable, bool has_pages);

  FileDescriptor descriptor_;
  const std::uint64_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace heddle::engine
