// Where a stage of the tokenizer puts what it makes, piece by piece, so that no stage holds more
// than the piece it works on: a function that is only borrowed, for as long as the call takes.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace heddle::text {

template <class T>
class Sink {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Sink> && std::invocable<F&, T>)
      Sink(F&& to)  // NOLINT: meant to convert
      : to_(const_cast<void*>(static_cast<const void*>(std::addressof(to)))),
        put_([](void* to, T value) {
          (*static_cast<std::remove_reference_t<F>*>(to))(std::forward<T>(value));
        }) {}

  void operator()(T value) const { put_(to_, std::forward<T>(value)); }

 private:
  void* to_;
  void (*put_)(void*, T);
};

}  // namespace heddle::text
