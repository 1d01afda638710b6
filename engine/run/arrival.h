// A tensor that is read while it is being made (heddle/abi/parts.h): how many of its rows are
// there. Any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "engine/tensor/tensor.h"

namespace heddle::engine {

class Arrival {
 public:
  // In host memory, row-major and without gaps.
  explicit Arrival(Tensor tensor);
  Arrival(const Arrival&) = delete;

  // Of the same memory.
  bool has(const heddle_tensor& part) const { return part.storage == tensor_->storage; }
  // The whole of it, and nothing else.
  bool is(const heddle_tensor& other) const;
  const Tensor& tensor() const { return tensor_; }

  // The first rows are written.
  void made(std::int64_t rows);
  // Its maker has ended well: all are.
  void end();
  // It is not going to be whole.
  void stop();
  bool is_stopped() const;

  // Waits for the first rows of a tensor of the same memory; the last row is there when end() was
  // called. Throws Code::cancelled where it was stopped.
  void await(const heddle_tensor& part, std::int64_t rows) const;
  // Waits for end(), and throws the same.
  void await_end() const;

 private:
  enum class State { coming, ended, stopped };

  void await(std::uint64_t end) const;  // of bytes

  const Tensor tensor_;
  const std::uint64_t bytes_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint64_t made_ = 0;  // bytes
  State state_ = State::coming;
};

}  // namespace heddle::engine
