// The work of encoding a text, as it is done: counted, and given up when somebody says so. One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>

namespace heddle::text {

// Thrown out of whatever was going on.
class Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("cancelled") {}
};

class Work {
 public:
  Work() = default;
  // `cancelled` is asked every few milliseconds. May be empty.
  explicit Work(std::function<bool()> cancelled) : cancelled_(std::move(cancelled)) {}

  // Steps: bytes looked at, candidates weighed. Throws Cancelled.
  void did(std::size_t steps) {
    total_ += steps;
    if (total_ < next_question_) return;
    next_question_ = total_ + kStepsBetweenQuestions;
    if (cancelled_ && cancelled_()) throw Cancelled();
  }
  std::uint64_t total() const { return total_; }

 private:
  static constexpr std::uint64_t kStepsBetweenQuestions = 1 << 16;

  std::function<bool()> cancelled_;
  std::uint64_t total_ = 0, next_question_ = 0;
};

}  // namespace heddle::text
