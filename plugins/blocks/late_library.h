// Functions of a shared library that is opened when the first of them is called: a plugin that
// needs a large library for a few of its nodes costs every start of the program nothing. Each is an
// object that is called as the function is, under the function's own name in the plugin's own
// namespace, where it hides the declaration of the library's header:
//
//   inline constexpr LateLibrary kAvif{"libavif.so.15"};
//   inline constinit LateFunction<decltype(::avifVersion)> avifVersion{kAvif, "avifVersion"};
//
// Thread-safe.
#pragma once

#include <atomic>

namespace heddle::blocks {

struct LateLibrary {
  const char* name;  // as the dynamic loader finds it
};

// The function of the library, which stays open until the process ends. Throws
// Error(HEDDLE_UNSUPPORTED) with the loader's reason.
void* late_function(const LateLibrary& library, const char* name);

template <class Function>
class LateFunction;

template <class Result, class... Arguments>
class LateFunction<Result(Arguments...)> {
 public:
  constexpr LateFunction(const LateLibrary& library, const char* name)
      : library_(library), name_(name) {}

  Result operator()(Arguments... arguments) const {
    auto* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = reinterpret_cast<Result (*)(Arguments...)>(late_function(library_, name_));
      function_.store(function, std::memory_order_release);
    }
    return function(arguments...);
  }

 private:
  const LateLibrary& library_;
  const char* const name_;
  mutable std::atomic<Result (*)(Arguments...)> function_{nullptr};
};

}  // namespace heddle::blocks
