// Primitives: oneDNN's, each made once for its shape, because making one compiles code. A primitive
// does one tile of an op on the thread that calls it and on no other: oneDNN's own threads are held
// to that one. It writes sums in f32; bias, activation and residual are gemm.h's Finish, as for
// our own kernels. Which primitive a tile gets follows from its shape alone. Owned by a Device;
// thread-safe, and so is every primitive.
//
// All operands are bf16, on processors that multiply pairs of them (AVX-512 with bf16, AMX): there
// oneDNN is twice as fast as our kernels, which compute in f32. In f32 it is no faster than those.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>

#include "scratch.h"

namespace heddle::cpu {

// A tile of linear/1: out (rows x columns) = x (rows x length) times some panels of a weight; all
// dense. REQUIRES: columns is a number of whole panels.
struct GemmShape {
  std::int64_t rows, columns, length;
};

// A tile of conv2d/1: some lines of one picture times one panel of the filter. x is dense, height x
// width x channels; out is dense, out_height x out_width x 32.
struct ConvolutionShape {
  std::int64_t height, width, channels, out_height, out_width;
  std::int64_t filter[2], stride[2];
  std::int64_t padding[4];  // top, left, bottom, right
};

class Primitive {
 public:
  virtual ~Primitive() = default;
  // Operands as the shape says. Any thread; what the library needs meanwhile comes from scratch.
  virtual void run(const void* x, const void* weight, float* out, Scratch& scratch) const = 0;
};

class Primitives {
 public:
  Primitives();
  ~Primitives();

  // nullptr where oneDNN has no kernel for packed weights on this processor. It stays valid as long
  // as this object.
  const Primitive* gemm(const GemmShape& shape);
  const Primitive* convolution(const ConvolutionShape& shape);

 private:
  using Key = std::array<std::int64_t, 13>;
  template <class Make>
  const Primitive* find(const Key& key, Make&& make);

  std::shared_mutex mutex_;
  std::map<Key, std::unique_ptr<const Primitive>> made_;  // mutex_; nothing is ever removed
};

}  // namespace heddle::cpu
