#include "engine/base/page_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <limits>
#include <mutex>
#include <utility>

namespace heddle::engine {

namespace {

constexpr std::uint64_t kNothing = std::numeric_limits<std::uint64_t>::max();

}  // namespace

// Written under a lock, read by a handler without one: the version is odd while the range changes.
struct PageGuard::Slot {
  std::atomic<std::uint32_t> version{0};
  std::atomic<std::uintptr_t> begin{0}, end{0};  // whole pages; both 0: free
  std::atomic<int> descriptor{-1};
  std::atomic<std::uint64_t> lost{kNothing};  // where; set after the size, which is of that moment
  std::atomic<std::uint64_t> file_size{0};
};

// Blocks of slots in a list that only grows, so that a handler can walk it at any time.
struct PageGuardTable {
  using Slot = PageGuard::Slot;
  struct Block {
    std::array<Slot, 64> slots;
    std::atomic<Block*> next{nullptr};
  };
  struct Range {
    std::uintptr_t begin = 0, end = 0;
    int descriptor = -1;
  };

  static Slot* take(const Range& range) {
    const std::lock_guard lock(mutex);
    for (std::atomic<Block*>* at = &first;; at = &at->load()->next) {
      if (at->load() == nullptr) at->store(new Block);
      for (Slot& slot : at->load()->slots)
        if (slot.begin.load() == 0) {
          set(slot, range);
          return &slot;
        }
    }
  }

  static void give_back(Slot& slot) {
    const std::lock_guard lock(mutex);
    set(slot, {});
  }

  // From here on only what a handler may do: atomics without locks, and calls of the system.

  // False: nobody guards that address.
  static bool cover(std::uintptr_t address) noexcept {
    for (Block* block = first.load(); block != nullptr; block = block->next.load())
      for (Slot& slot : block->slots)
        if (const Range range = range_of(slot); range.begin <= address && address < range.end)
          return cover(slot, range, address);
    return false;
  }

  inline static std::mutex mutex;
  inline static std::atomic<Block*> first{nullptr};
  inline static std::atomic<std::uint64_t> lost_count{0};
  inline static std::atomic<std::uintptr_t> page{4096};
  static_assert(std::atomic<Block*>::is_always_lock_free &&
                std::atomic<std::uint64_t>::is_always_lock_free &&
                std::atomic<std::uintptr_t>::is_always_lock_free);

 private:
  static void set(Slot& slot, const Range& range) {
    ++slot.version;
    slot.begin = range.begin;
    slot.end = range.end;
    slot.descriptor = range.descriptor;
    slot.lost = kNothing;
    ++slot.version;
  }

  // Of a slot that changes meanwhile it is none: that of the page's own mapping does not.
  static Range range_of(const Slot& slot) noexcept {
    const std::uint32_t version = slot.version.load();
    const Range range{slot.begin.load(), slot.end.load(), slot.descriptor.load()};
    return version % 2 == 0 && slot.version.load() == version ? range : Range{};
  }

  static bool cover(Slot& slot, const Range& range, std::uintptr_t address) noexcept {
    const std::uintptr_t page_size = page.load(), at = address / page_size * page_size;
    struct stat status {};
    const bool is_known = ::fstat(range.descriptor, &status) == 0;
    const std::uint64_t size = is_known ? static_cast<std::uint64_t>(status.st_size) : 0;
    // First the mark: another thread may read the zeros as soon as they are there.
    if (slot.lost.load() == kNothing) {
      slot.file_size = size;
      slot.lost = at - range.begin;
    }
    ++lost_count;
    // All that went with the end of the file at once; a page in front of that is one that the disk
    // did not give. By the number of the call: sanitizers watch over mmap() with locks of theirs.
    const bool is_cut = is_known && size <= at - range.begin;
    const std::uintptr_t end = is_cut ? range.end : at + page_size;
    const long result = ::syscall(SYS_mmap, at, end - at, PROT_READ,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0L);
    return static_cast<std::uintptr_t>(result) == at;
  }
};

namespace {

std::atomic<const struct sigaction*> previous{nullptr};  // what ours has taken the place of
std::atomic<long> passing{0};                            // a thread that hands a fault on

void pass_on(int number, siginfo_t* info, void* context) {
  const struct sigaction& before = *previous.load();
  const bool is_sent = info->si_code <= 0;  // by a process, not by a page
  const bool is_standard = (before.sa_flags & SA_SIGINFO) == 0 &&
                           (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN);
  if (is_standard && before.sa_handler == SIG_IGN && is_sent) return;
  // One that was put in our place, and handed the fault back to us, is not asked again.
  const long self = ::syscall(SYS_gettid);
  if (!is_standard && passing.exchange(self) != self) {
    if ((before.sa_flags & SA_SIGINFO) != 0)
      before.sa_sigaction(number, info, context);
    else
      before.sa_handler(number);
    passing = 0;
    return;
  }
  // The access is made again when this returns, and ends the process as if we had not been here.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(number, &standard, nullptr);
  if (is_sent) ::raise(number);
}

void on_fault(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool is_covered =
      info->si_code > 0 && PageGuardTable::cover(reinterpret_cast<std::uintptr_t>(info->si_addr));
  errno = saved;
  if (!is_covered) pass_on(number, info, context);
}

// Unless it is there. Others may have taken it away, as programs do that catch faults for a while.
void install() {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  struct sigaction now {};
  ::sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_fault) return;
  previous = new struct sigaction(now);  // stays: a handler may be reading the one before
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

PageGuard::PageGuard(const std::byte* begin, std::uint64_t bytes, int descriptor) {
  PageGuardTable::page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  install();
  const auto from = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t page = PageGuardTable::page;
  const std::uintptr_t end = from + (bytes + page - 1) / page * page;
  slot_ = PageGuardTable::take({from, end, descriptor});
}

PageGuard::PageGuard(PageGuard&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}

PageGuard& PageGuard::operator=(PageGuard&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

PageGuard::~PageGuard() {
  if (slot_ != nullptr) PageGuardTable::give_back(*slot_);
}

bool PageGuard::has_lost_pages() const { return slot_ != nullptr && slot_->lost != kNothing; }

LostPages PageGuard::lost_pages() const { return {slot_->lost, slot_->file_size}; }

std::uint64_t lost_page_count() { return PageGuardTable::lost_count; }

}  // namespace heddle::engine
