// Says of work that is enqueued on devices whether it is still wanted: heddle_cancel with an owner.
// Shared by those who enqueue and by the streams that have something of it; any thread.
#pragma once

#include <atomic>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include "heddle/abi/device.h"

namespace heddle::engine {

class CancelFlag final : public heddle_cancel {
 public:
  static boost::intrusive_ptr<CancelFlag> make() { return new CancelFlag; }
  CancelFlag(const CancelFlag&) = delete;

  // For good.
  void set() noexcept { __atomic_store_n(&value, 1, __ATOMIC_RELEASE); }
  bool is_set() const noexcept { return __atomic_load_n(&value, __ATOMIC_ACQUIRE) != 0; }
  // Work has been left out because of it. Known when the work has been waited for.
  bool was_obeyed() const noexcept { return __atomic_load_n(&passed_over, __ATOMIC_ACQUIRE) != 0; }

  // Somebody else has come to depend on the work: it is not to be set any more.
  void hold() noexcept { is_held_.store(true, std::memory_order_release); }
  bool is_held() const noexcept { return is_held_.load(std::memory_order_acquire); }

 private:
  CancelFlag() noexcept
      : heddle_cancel{sizeof(heddle_cancel), 0, 0, 0, &retain_flag, &release_flag} {}
  ~CancelFlag() = default;

  static void retain_flag(heddle_cancel* flag) {
    static_cast<CancelFlag*>(flag)->owners_.fetch_add(1, std::memory_order_relaxed);
  }
  static void release_flag(heddle_cancel* flag) {
    auto* const self = static_cast<CancelFlag*>(flag);
    if (self->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete self;
  }
  friend void intrusive_ptr_add_ref(CancelFlag* flag) { retain_flag(flag); }
  friend void intrusive_ptr_release(CancelFlag* flag) { release_flag(flag); }

  std::atomic<std::uint32_t> owners_{0};
  std::atomic<bool> is_held_{false};
};

using CancelFlagRef = boost::intrusive_ptr<CancelFlag>;

}  // namespace heddle::engine
