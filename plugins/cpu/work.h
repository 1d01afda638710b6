// Work: one thing to do, with everything it needs stored inside, so that enqueueing an op does not
// allocate. Move-only; whoever holds it owns what is inside.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace heddle::cpu {

class Stream;

class Work {
 public:
  // Room for a call with kMaxOperands views (call.h checks).
  static constexpr std::size_t kBytes = 1472;

  Work() = default;

  template <class Action>
  requires(!std::is_same_v<std::remove_cvref_t<Action>, Work>) explicit Work(Action&& action) {
    using Stored = std::remove_cvref_t<Action>;
    static_assert(sizeof(Stored) <= kBytes && alignof(Stored) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<Stored>);
    new (room_) Stored(std::forward<Action>(action));
    run_ = [](void* stored, Stream& stream) { (*static_cast<Stored*>(stored))(stream); };
    move_ = [](void* stored, void* to) {
      auto* from = static_cast<Stored*>(stored);
      if (to != nullptr) new (to) Stored(std::move(*from));
      from->~Stored();
    };
  }

  Work(Work&& other) noexcept { take(other); }
  Work& operator=(Work&& other) noexcept {
    if (this != &other) {
      clear();
      take(other);
    }
    return *this;
  }
  ~Work() { clear(); }

  void operator()(Stream& stream) { run_(room_, stream); }

 private:
  void take(Work& other) {
    if (other.run_ == nullptr) return;
    other.move_(other.room_, room_);
    run_ = std::exchange(other.run_, nullptr);
    move_ = std::exchange(other.move_, nullptr);
  }

  void clear() {
    if (run_ == nullptr) return;
    move_(room_, nullptr);
    run_ = nullptr;
  }

  void (*run_)(void* stored, Stream& stream) = nullptr;
  void (*move_)(void* stored, void* to) = nullptr;  // to == nullptr: destroy only
  alignas(std::max_align_t) std::byte room_[kBytes];
};

}  // namespace heddle::cpu
