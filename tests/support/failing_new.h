// Allocations by `new` that fail on all threads but the test's own: what they do then, nobody else
// sees. To be included by one file of a program, which gets its operator new from here. Sanitizers
// have one of their own, which stays; there nothing fails.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>

namespace heddle::test {

class FailingNew {
 public:
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

  // From the nth on (0: the first), so many fail, on every thread but this one, as long as it
  // lives.
  explicit FailingNew(std::int64_t nth, std::int64_t count = 1) {
    spared() = ::pthread_self();
    failed() = 0;
    first() = nth;
    last() = count == kAll ? kAll : nth + count;
    seen() = 0;
    is_armed() = true;
  }
  ~FailingNew() { is_armed() = false; }
  FailingNew(const FailingNew&) = delete;

  static std::int64_t failures() { return failed(); }

  static void* allocate(std::size_t bytes) {
    if (is_armed() && ::pthread_self() != spared()) {
      const std::int64_t number = seen()++;
      if (number >= first() && number < last()) {
        ++failed();
        throw std::bad_alloc();
      }
    }
    void* const data = std::malloc(bytes == 0 ? 1 : bytes);
    if (data == nullptr) throw std::bad_alloc();
    return data;
  }

 private:
  template <class T, int kNumber>
  static std::atomic<T>& shared() {
    static constinit std::atomic<T> value{};
    return value;
  }
  static std::atomic<bool>& is_armed() { return shared<bool, 0>(); }
  static std::atomic<std::int64_t>& seen() { return shared<std::int64_t, 0>(); }
  static std::atomic<std::int64_t>& failed() { return shared<std::int64_t, 1>(); }
  static std::atomic<std::int64_t>& first() { return shared<std::int64_t, 2>(); }
  static std::atomic<std::int64_t>& last() { return shared<std::int64_t, 3>(); }
  static std::atomic<pthread_t>& spared() { return shared<pthread_t, 0>(); }
};

}  // namespace heddle::test

#if !defined(HEDDLE_ADDRESS_SANITIZER) && !defined(HEDDLE_THREAD_SANITIZER)
#define HEDDLE_FAILING_NEW 1
void* operator new(std::size_t bytes) { return heddle::test::FailingNew::allocate(bytes); }
void* operator new[](std::size_t bytes) { return heddle::test::FailingNew::allocate(bytes); }
void operator delete(void* data) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t) noexcept { std::free(data); }
#else
#define HEDDLE_FAILING_NEW 0
#endif
