// heddle/checked.hpp - arithmetic on sizes that comes out right or throws: casts, sums and products
// of numbers that workflows and files give. An input lies in its range (heddle/abi/node.h), but
// what two of them make together may not fit: 4096 pictures of 16384 x 16384 have more elements
// than 32 bits count. All throw Error(HEDDLE_INVALID_ARGUMENT) with `what`, which begins the
// message, and the values. Pure; any thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "plugin.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

namespace checked_detail {

inline std::string text(double number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.17g", number);
  return digits;
}
template <std::integral T>
std::string text(T number) {
  return std::to_string(number);
}

template <class To, class From>
[[noreturn]] void does_not_fit(From value, const char* what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string(what) + ": " + text(value) +
                                           " does not fit, it has to be from " +
                                           text(std::numeric_limits<To>::min()) + " to " +
                                           text(std::numeric_limits<To>::max()));
}
[[noreturn]] inline void too_large(std::initializer_list<std::int64_t> numbers, const char* sign,
                                   const char* what) {
  std::string all;
  for (const std::int64_t number : numbers)
    all += (all.empty() ? "" : sign) + std::to_string(number);
  throw Error(HEDDLE_INVALID_ARGUMENT,
              std::string(what) + ": " + all + " exceeds 64 bits. Give smaller numbers");
}

}  // namespace checked_detail

// The same number as another integer type. A fraction is cut off, as by static_cast; NaN and
// infinities do not fit.
template <std::integral To, class From>
constexpr To checked_cast(From value, const char* what) {
  if constexpr (std::is_floating_point_v<From>) {
    // Powers of two, which a double holds: one more than the greatest, and the least.
    const double above = 2.0 * double(std::numeric_limits<To>::max() / 2 + 1),
                 least = double(std::numeric_limits<To>::min());
    const double whole = std::trunc(double(value));
    if (!(whole >= least && whole < above)) checked_detail::does_not_fit<To>(double(value), what);
  } else {
    if (!std::in_range<To>(value)) checked_detail::does_not_fit<To>(value, what);
  }
  return static_cast<To>(value);
}

// The nearest whole number, halves to the even one.
inline std::int64_t checked_round(double value, const char* what) {
  return checked_cast<std::int64_t>(std::nearbyint(value), what);
}

inline std::int64_t checked_sum(std::initializer_list<std::int64_t> terms, const char* what) {
  std::int64_t sum = 0;
  for (const std::int64_t term : terms)
    if (__builtin_add_overflow(sum, term, &sum)) checked_detail::too_large(terms, " + ", what);
  return sum;
}

// 1 of none; 0 where one is 0, if those before it fit.
inline std::int64_t checked_product(std::initializer_list<std::int64_t> factors, const char* what) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product))
      checked_detail::too_large(factors, " x ", what);
  return product;
}

}  // namespace heddle
