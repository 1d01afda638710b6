// VectorKernels: the inner loops of the fast kernels, over f32 in cache. The same source
// (vector_body.h) is compiled once per instruction set and the best table that the processor has is
// chosen at run time; where a build has no fitting compiler the plain one remains. Each loop treats
// every element alike, wherever it stands in an array, so results do not depend on how a tensor was
// cut. Constants; every function is pure and may run on any thread.
#pragma once

#include <cstdint>

#include "heddle/abi/ops.h"

namespace heddle::cpu {

// Products are made of blocks: kBlockRows rows of the left operand times kPanelColumns columns of
// the right one.
inline constexpr std::int64_t kBlockRows = 12;
inline constexpr std::int64_t kFewRows = 4;  // a smaller block, for vectors
inline constexpr std::int64_t kPanelColumns = 32;

struct VectorKernels {
  const char* isa;  // "avx512", "avx2", "plain"

  // ---- products: c (rows x 32, ldc apart) gets a (packed: k x rows) times b (k x 32), added when
  // add. Each element is one chain of k multiply-adds from zero, so neither the number of rows nor
  // that of columns shows in its bytes.
  // Meanwhile asks for the memory at `ahead`, 16 bytes for every term: what the caller will read
  // next.
  void (*multiply)(const float* a, const float* b, std::int64_t k, float* c, std::int64_t ldc,
                   bool add, const void* ahead);
  // For few rows b is read in its own type: there is nothing to spread the cost of widening it
  // over.
  void (*multiply_few)(const float* a, heddle_dtype dtype, const void* b, std::int64_t k, float* c,
                       std::int64_t ldc, bool add);
  // The same for bf16 in pairs: b[i / 2][column][i % 2]; k is even.
  void (*multiply_few_pairs)(const float* a, const void* b, std::int64_t k, float* c,
                             std::int64_t ldc, bool add);
  // c, added when add: the sum over taps t of the 12 rows at a[12 t + r] (k long, they lie
  // anywhere) times part t of b (taps x k x 32).
  void (*multiply_taps)(const float* const* a, const float* b, std::int64_t taps, std::int64_t k,
                        float* c, std::int64_t ldc, bool add);
  // The sum of a[i] * b[i] of numbers of 8 bits in 16, exact where it is below 2^31. REQUIRES of
  // both: multiples of 32.
  std::int32_t (*multiply_whole)(const std::int16_t* a, const std::int16_t* b, std::int64_t count);
  void (*widen_whole)(const std::int8_t* from, std::int64_t count, std::int16_t* to);
  // packed[i * rows + r] = a[r][i] for 12 rows, for 4, and for the 32 of a panel.
  void (*pack)(const float* const* a, std::int64_t k, float* packed);
  void (*pack_few)(const float* const* a, std::int64_t k, float* packed);
  void (*pack_panel)(const float* const* a, std::int64_t k, float* packed);

  // ---- types: f32, f16, bf16 to f32 and back, rounded to nearest even; and to f32 the f8 types
  // and block formats, these from the beginning of a block
  void (*widen)(heddle_dtype dtype, const void* from, std::int64_t count, float* to);
  // Part of a panel of bf16 in pairs to k x 32; k is even.
  void (*widen_pairs)(const void* from, std::int64_t k, float* to);
  void (*narrow)(heddle_dtype dtype, const float* from, std::int64_t count, void* to);

  // ---- elementwise; out may be an input
  void (*add)(const float* a, const float* b, float* out, std::int64_t count);
  void (*multiply_each)(const float* a, const float* b, float* out, std::int64_t count);
  void (*add_scaled)(const float* x, float factor, float* sum,
                     std::int64_t count);  // sum + factor * x, two roundings
  void (*scale)(const float* x, float factor, float* out, std::int64_t count);
  void (*scale_clamp)(const float* x, const float attrs[4], float* out, std::int64_t count);
  void (*gated_add)(const float* x, const float* gate, const float* y, float* out,
                    std::int64_t count);
  void (*activate)(heddle_activation kind, const float* x, float* out, std::int64_t count);

  // ---- rows
  double (*sum)(const float* x, std::int64_t count);
  double (*sum_of_squares)(const float* x, float mean, std::int64_t count);  // of x - mean
  // (x - mean) * scale * weight + bias; weight and bias may be nullptr
  void (*normalise)(const float* x, float mean, float scale, const float* weight, const float* bias,
                    float* out, std::int64_t count);
  // (x - mean) * scale + bias, and total += (x - mean)^2, each with arrays as long as x
  void (*normalise_each)(const float* x, const float* mean, const float* scale, const float* bias,
                         float* out, std::int64_t count);
  void (*add_square_of_difference)(const float* x, const float* mean, float* total,
                                   std::int64_t count);
  // (x - mean) * scale * (1 + factor) + shift
  void (*modulate)(const float* x, float mean, float scale, const float* factor, const float* shift,
                   float* out, std::int64_t count);
  // (a, b) -> (a * cosine - b * sine, a * sine + b * cosine), where they lie
  void (*turn)(float* a, float* b, const float* cosine, const float* sine, std::int64_t count);
  // x[i] * cosine[i] + x[i ^ 1] * sine[i]; count is even
  void (*rotate)(const float* x, const float* cosine, const float* sine, float* out,
                 std::int64_t count);

  // ---- attention, 32 queries side by side: scores is keys x 32, the other arrays have 32 numbers.
  // Raises largest to the largest score times scale of its column, turns the scores into exp(score
  // * scale - largest), adds them to sum, and gives in `rescale` the factor for what was summed
  // before.
  void (*soften)(float* scores, std::int64_t keys, float scale, float* largest, float* sum,
                 float* rescale);
  // rows of 32 numbers times factor[32]
  void (*scale_columns)(float* rows, std::int64_t count, const float* factor);
};

// The best table for this processor. The environment's ONEDNN_MAX_CPU_ISA caps it, as it caps
// oneDNN.
const VectorKernels& vector_kernels();

// The single tables; nullptr when not in this build. For vector_kernels() only.
const VectorKernels* avx512_kernels();
const VectorKernels* avx2_kernels();
const VectorKernels* plain_kernels();

}  // namespace heddle::cpu
