// --set NODE.INPUT=VALUE where VALUE stands for several: 1..8 or [3,5,8] on a number input makes a
// run of each. Several such options make a run of every combination, the last option changing
// fastest. Pure values; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::cli {

// What a class declares of the input. Only numbers take ranges and lists; everything else takes
// VALUE whole, because "1..8" may be a text like any other.
enum class InputKind { integer, real, other };

// Of a declared type, which may name several: "INT,FLOAT".
InputKind kind_of_type(std::string_view declared);

// More runs than this in one call are refused: it is a slip of the keyboard, and every one of them
// is checked before the first starts.
inline constexpr std::size_t kMostRuns = 100'000;

// The values that `value` stands for, each as JSON: {"1", "2", "3"} for "1..3" (steps of 1, both
// ends included) or "[1,2,3]"; {value} when it is neither. Throws engine::Error(invalid_argument)
// for a range that is empty, too long, or not of whole numbers on an integer, and for an empty
// list.
std::vector<std::string> values_of(std::string_view value, InputKind kind);

class Sweep {
 public:
  // Throws engine::Error(invalid_argument) when there would be more than kMostRuns.
  void add(std::vector<std::string> values);

  std::size_t runs() const { return runs_; }               // 1 when nothing was added
  std::vector<std::string> values(std::size_t run) const;  // one of each add(), in their order

 private:
  std::vector<std::vector<std::string>> axes_;
  std::size_t runs_ = 1;
};

}  // namespace heddle::cli
