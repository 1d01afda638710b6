// Matrix products: blocks in registers, and how their left operands are packed. Part of
// vector_body.h, and included by it alone.
#pragma once

#include <cstdint>
#include <cstring>

#include "vector_kernels.h"
#include "vector_types.h"

namespace heddle::cpu {

namespace {

// Rows of the left operand, packed: element i of row r.
template <int packed_rows>
struct PackedRows {
  const float* a;
  PackedRows tap(std::int64_t) const { return *this; }
  float operator()(int r, std::int64_t i) const { return a[i * packed_rows + r]; }
};

// Rows that lie anywhere, others for every tap.
struct ScatteredRows {
  const float* const* a;
  struct Tap {
    const float* row[kRows];
    float operator()(int r, std::int64_t i) const { return row[r][i]; }
  };
  Tap tap(std::int64_t t) const {
    Tap result;
    for (int r = 0; r < kRows; ++r) result.row[r] = a[t * kBlockRows + r];
    return result;
  }
};

// Columns of a panel that begin at b: a vector of element i.
template <heddle_dtype dtype>
struct Panel;
template <>
struct Panel<HEDDLE_F32> {
  const float* b;
  Floats operator()(std::int64_t i, int column) const {
    return load<Floats>(b + i * kPanelColumns + column);
  }
};
template <>
struct Panel<HEDDLE_F16> {
  const std::uint16_t* b;
  Floats operator()(std::int64_t i, int column) const {
    return widen_f16(b + i * kPanelColumns + column);
  }
};
template <>
struct Panel<HEDDLE_BF16> {
  const std::uint16_t* b;
  Floats operator()(std::int64_t i, int column) const {
    return widen_bf16(b + i * kPanelColumns + column);
  }
};

// The same in pairs of rows: element i of column c is number i % 2 of word (i / 2, c).
struct PairedPanel {
  const std::uint16_t* b;
  Floats operator()(std::int64_t i, int column) const {
    const Words words = load<Words>(b + (i & ~std::int64_t{1}) * kPanelColumns + 2 * column);
    const Words bits = (i & 1) == 0 ? words << 16 : words & 0xffff0000u;
    return load<Floats>(&bits);
  }
};

// One register block: rows x kVectors vectors of sums over taps * k terms. Meanwhile asks for
// memory at `ahead`, a line for every 4 terms.
template <int rows, class Left, class Right>
inline void multiply_block(Left left, Right right, std::int64_t taps, std::int64_t k, float* c,
                           std::int64_t ldc, bool add, const char* ahead) {
  constexpr int kLineBytes = 64, kTermsPerLine = 4;
  Floats sum[rows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[r][v] = Floats{};
  for (std::int64_t t = 0; t < taps; ++t, right.b += k * kPanelColumns) {
    const auto row = left.tap(t);
    const auto add_term = [&](std::int64_t i) __attribute__((always_inline)) {
      Floats b[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) b[v] = right(i, v * kWidth);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        const Floats a = all(row(r, i));
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[r][v] += a * b[v];
      }
    };
    std::int64_t i = 0;
    for (; i + kTermsPerLine <= k; i += kTermsPerLine) {
      __builtin_prefetch(ahead);
      ahead += kLineBytes;
#pragma GCC unroll 4
      for (int j = 0; j < kTermsPerLine; ++j) add_term(i + j);
    }
    for (; i < k; ++i) add_term(i);
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* to = c + r * ldc + v * kWidth;
      store(to, add ? load<Floats>(to) + sum[r][v] : sum[r][v]);
    }
  }
}

void multiply(const float* a, const float* b, std::int64_t k, float* c, std::int64_t ldc, bool add,
              const void* ahead) {
  for (std::int64_t column = 0; column < kPanelColumns; column += kVectors * kWidth)
    for (int row = 0; row < kBlockRows; row += kRows)
      multiply_block<kRows>(PackedRows<kBlockRows>{a + row}, Panel<HEDDLE_F32>{b + column}, 1, k,
                            c + row * ldc + column, ldc, add, static_cast<const char*>(ahead));
}

void multiply_few(const float* a, heddle_dtype dtype, const void* b, std::int64_t k, float* c,
                  std::int64_t ldc, bool add) {
  const char* here = static_cast<const char*>(b);  // read once and in order: nothing to ask for
  const PackedRows<kFewRows> left{a};
  const auto* floats = static_cast<const float*>(b);
  const auto* halves = static_cast<const std::uint16_t*>(b);
  for (int column = 0; column < kPanelColumns; column += kVectors * kWidth) {
    if (dtype == HEDDLE_F32)
      multiply_block<kFewRows>(left, Panel<HEDDLE_F32>{floats + column}, 1, k, c + column, ldc, add,
                               here);
    else if (dtype == HEDDLE_F16)
      multiply_block<kFewRows>(left, Panel<HEDDLE_F16>{halves + column}, 1, k, c + column, ldc, add,
                               here);
    else
      multiply_block<kFewRows>(left, Panel<HEDDLE_BF16>{halves + column}, 1, k, c + column, ldc,
                               add, here);
  }
}

void multiply_few_pairs(const float* a, const void* b, std::int64_t k, float* c, std::int64_t ldc,
                        bool add) {
  for (std::int64_t column = 0; column < kPanelColumns; column += kVectors * kWidth)
    multiply_block<kFewRows>(PackedRows<kFewRows>{a},
                             PairedPanel{static_cast<const std::uint16_t*>(b) + 2 * column}, 1, k,
                             c + column, ldc, add, static_cast<const char*>(b));
}

void multiply_taps(const float* const* a, const float* b, std::int64_t taps, std::int64_t k,
                   float* c, std::int64_t ldc, bool add) {
  for (std::int64_t column = 0; column < kPanelColumns; column += kVectors * kWidth)
    for (int row = 0; row < kBlockRows; row += kRows)
      multiply_block<kRows>(ScatteredRows{a + row}, Panel<HEDDLE_F32>{b + column}, taps, k,
                            c + row * ldc + column, ldc, add, reinterpret_cast<const char*>(b));
}

// Squares of 4 x 4, turned in registers. Asks for the next k of each row, which the caller packs
// after this block has been multiplied; past the end of a tensor that has no effect.
constexpr int kLineFloats = 16;

template <int packed_rows>
void pack(const float* const* a, std::int64_t k, float* packed) {
  for (int row = 0; row < packed_rows; row += 4) {
    const float *a0 = a[row], *a1 = a[row + 1], *a2 = a[row + 2], *a3 = a[row + 3];
    float* to = packed + row;
    std::int64_t i = 0;
    for (; i + 4 <= k; i += 4) {
      if (i % kLineFloats == 0) {
        __builtin_prefetch(a0 + i + k);
        __builtin_prefetch(a1 + i + k);
        __builtin_prefetch(a2 + i + k);
        __builtin_prefetch(a3 + i + k);
      }
      const Four x0 = load<Four>(a0 + i), x1 = load<Four>(a1 + i), x2 = load<Four>(a2 + i),
                 x3 = load<Four>(a3 + i);
      const Four low01 = __builtin_shufflevector(x0, x1, 0, 4, 1, 5),
                 high01 = __builtin_shufflevector(x0, x1, 2, 6, 3, 7);
      const Four low23 = __builtin_shufflevector(x2, x3, 0, 4, 1, 5),
                 high23 = __builtin_shufflevector(x2, x3, 2, 6, 3, 7);
      store(to + (i + 0) * packed_rows, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
      store(to + (i + 1) * packed_rows, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
      store(to + (i + 2) * packed_rows, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
      store(to + (i + 3) * packed_rows, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
    }
    for (; i < k; ++i) {
      to[i * packed_rows + 0] = a0[i];
      to[i * packed_rows + 1] = a1[i];
      to[i * packed_rows + 2] = a2[i];
      to[i * packed_rows + 3] = a3[i];
    }
  }
}

}  // namespace

}  // namespace heddle::cpu
