// Mapped files that another program cuts short. To touch a page that has gone with the end of its
// file, or that the disk cannot give, is SIGBUS, which would end the process. Here the page is
// replaced by zeros, reading goes on, and the mapping is marked: whoever reads mapped bytes asks
// for the mark before what was made of them leaves.
//
// The handler is installed when a range is guarded, unless it is there, and calls the one that was
// there before for what is not in a guarded range. A program that installs a handler of its own for
// SIGBUS afterwards has to call the one that sigaction() gives back, in the same way; where it does
// not, a file that is cut short ends the process as it would without us. It runs on whatever thread
// touched the page, on the alternate stack where that thread has one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::engine {

// What was lost of a range first.
struct LostPages {
  std::uint64_t offset = 0;     // of the page, from the start of the range
  std::uint64_t file_size = 0;  // bytes that the file still had then
};

// Guards one mapping from its beginning; move-only. REQUIRES: it goes before the mapping does, and
// the descriptor stays open as long as it lives. Any thread.
class PageGuard {
 public:
  PageGuard() = default;
  // `descriptor`: of the mapped file. Throws std::bad_alloc.
  PageGuard(const std::byte* begin, std::uint64_t bytes, int descriptor);
  PageGuard(PageGuard&& other) noexcept;
  PageGuard& operator=(PageGuard&& other) noexcept;
  ~PageGuard();

  // Whether a page was replaced by zeros. What a thread has read, that thread sees marked.
  bool has_lost_pages() const;
  LostPages lost_pages() const;  // REQUIRES: has_lost_pages()

 private:
  struct Slot;
  friend struct PageGuardTable;
  Slot* slot_ = nullptr;
};

// Of all guarded ranges there ever were: to see at the cost of one load that nothing has happened.
std::uint64_t lost_page_count();

}  // namespace heddle::engine
