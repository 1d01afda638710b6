// Rows of numbers as rows of f8_e4m3, each with a scale of its own: what a number of 8 bits is
// multiplied by. The largest number of a row becomes the largest one of the type. A row's bytes
// depend on that row alone. Enqueues only.
//
// scale = max(|x|) / 448, at least 2^-100, in f32; a number is x times the f32 reciprocal of the
// scale, rounded once to nearest even. NaN stays NaN, and an infinity becomes one.
#pragma once

#include <cstdint>

#include "heddle/abi/device.h"
#include "stream.h"

namespace heddle::cuda {

// Where rows lie, and where they go: row-major, one after the other.
struct Fp8Rows {
  const void* from;
  heddle_dtype dtype;  // of `from`
  std::int64_t rows, columns;
  std::int64_t step;  // elements from row to row of `from`
  void* to;           // rows * columns bytes
  float* scales;      // one of each row
};

// Operands of ops: f32, f16 or bf16.
void to_fp8(Stream& stream, const Fp8Rows& rows);

// Rows of a file's tensor of any floating-point type that is not in blocks, times `scale`, which
// each number of f32 is rounded with.
void store_as_fp8(Stream& stream, const Fp8Rows& rows, float scale);

}  // namespace heddle::cuda
