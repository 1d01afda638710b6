// Data that only the holder of a lock can touch, checked by the compiler. Prefer Guarded<T>: the
// value cannot be reached without its lock. Where several members share one lock, use Mutex with
// HEDDLE_GUARDED_BY on each of them; clang's -Wthread-safety then refuses an access without the
// lock, while g++ ignores the annotations.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#if defined(__clang__)
#define HEDDLE_THREAD(annotation) __attribute__((annotation))
#else
#define HEDDLE_THREAD(annotation)
#endif
// On a member: only with `mutex` held. On a function: the caller holds `mutex`.
#define HEDDLE_GUARDED_BY(mutex) HEDDLE_THREAD(guarded_by(mutex))
#define HEDDLE_REQUIRES(mutex) HEDDLE_THREAD(requires_capability(mutex))

namespace heddle::engine {

// std::mutex as the analysis wants to see it. std::condition_variable_any waits on it directly.
class HEDDLE_THREAD(capability("mutex")) Mutex {
 public:
  void lock() HEDDLE_THREAD(acquire_capability()) { mutex_.lock(); }
  void unlock() HEDDLE_THREAD(release_capability()) { mutex_.unlock(); }
  bool try_lock() HEDDLE_THREAD(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

// Holds a Mutex for a scope.
class HEDDLE_THREAD(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HEDDLE_THREAD(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() HEDDLE_THREAD(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A value and its mutex. `*guarded.lock()` holds the lock for one expression, `auto value =
// guarded.lock();` for a scope.
template <typename T>
class Guarded {
 public:
  // The lock and access to the value while it lives. Not to be kept beyond the Guarded.
  template <typename U>
  class Locked {
   public:
    U& operator*() const { return *value_; }
    U* operator->() const { return value_; }

    // Gives the lock up until `changed` is notified and `ready(value)` holds; has it again
    // afterwards.
    template <typename Ready>
    void wait(std::condition_variable& changed, Ready ready) {
      changed.wait(lock_, [&] { return ready(*value_); });
    }

   private:
    friend class Guarded;
    Locked(std::mutex& mutex, U& value) : lock_(mutex), value_(&value) {}

    std::unique_lock<std::mutex> lock_;
    U* value_;
  };

  template <typename... Args>
  explicit Guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  [[nodiscard]] Locked<T> lock() { return Locked<T>(mutex_, value_); }
  [[nodiscard]] Locked<const T> lock() const { return Locked<const T>(mutex_, value_); }

 private:
  mutable std::mutex mutex_;
  T value_;
};

}  // namespace heddle::engine
