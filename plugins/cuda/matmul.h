// Matmul: cuBLASLt's matrix product, for one device. What is asked for is described by shapes; the
// algorithm is the first that the library proposes for them, kept for the next time. Thread-safe.
#pragma once

#include <cublasLt.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>

#include "device.h"

namespace heddle::cuda {

// out (m, n) = epilogue(x (m, k) weight (n, k)^T + bias) [+ residual], row-major, `batch` times.
// Steps are elements from row to row, jumps from item to item. Operands of f8_e4m3 have an f32 for
// each row, which its numbers are multiplied by. Those of i8 make i32, without a bias or a
// function. Over 15 members: all that the choice of an algorithm depends on; key() is made of every
// one.
struct Gemm {
  std::int64_t m, n, k, batch;
  heddle_dtype operands, result;  // of x and weight; of out and residual
  std::int64_t x_step, weight_step, out_step, residual_step;
  std::int64_t x_jump, out_jump, residual_jump;
  cublasLtEpilogue_t epilogue;  // with or without bias
  bool residual;
  bool is_weight_flipped = false;  // it is (k, n), as the values of attention are

  auto key() const {
    return std::tuple(m, n, k, batch, operands, result, x_step, weight_step, out_step,
                      residual_step, x_jump, out_jump, residual_jump, int(epilogue), residual,
                      is_weight_flipped);
  }
};

struct Matrices {
  const void *x, *weight, *bias, *residual;  // bias: of bias_dtype()
  void *out, *workspace;
  const float *x_scales = nullptr, *weight_scales = nullptr;  // of operands of f8_e4m3
};

class Matmul {
 public:
  // What a product may use besides its operands, in bytes: room for four sums of each number, where
  // sums are split over blocks, but no more than cuBLAS advises for Hopper. In a step that is
  // streamed into little memory, room is dear.
  static std::size_t workspace_bytes(const Gemm& gemm);

  // What a product's bias has to be: its result's type, but bf16 where 8 bits are summed to f32.
  static heddle_dtype bias_dtype(const Gemm& gemm);

  // Opens the library, which needs no context. False: it is not there.
  static bool is_there() noexcept;
  // nullptr, with a word in the log, when the library is not found or is of another major version.
  static std::unique_ptr<Matmul> open(Device& device);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  // Whether the library has an algorithm for it. Asks once for each product.
  bool takes(const Gemm& gemm) noexcept;
  // It is going to be multiplied: a thread of this asks the library, which takes milliseconds.
  void expect(const Gemm& gemm) noexcept;

  // Enqueues. matrices.workspace has workspace_bytes(); all addresses are multiples of 16. False:
  // no algorithm takes it.
  bool multiply(cudaStream_t stream, const Gemm& gemm, const Matrices& matrices);

 private:
  struct Library;
  struct Chosen;
  Matmul(Device& device, const Library& library);
  static const Library& library();
  const Chosen& choose(const Gemm& gemm);
  std::unique_ptr<Chosen> ask(const Gemm& gemm);
  void choose_expected();

  Device& device_;
  const Library& library_;
  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  using Key = decltype(std::declval<const Gemm&>().key());
  std::map<Key, std::unique_ptr<Chosen>> chosen_;  // mutex_; nullptr: somebody is asking
  std::deque<Gemm> expected_;                      // mutex_
  bool stops_ = false;                             // mutex_
  std::thread thread_;                             // mutex_, until the destructor
};

}  // namespace heddle::cuda
