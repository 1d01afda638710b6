// A matrix as the product of two narrow ones, by its largest singular values: how a LoRA is made of
// the difference of two models. Eigen and Spectra compute; they are seen in lora_extract.cpp only.
// Pure; any thread; the same numbers give the same bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::loaders {

struct LoraFactors {
  std::int64_t rank = 0;
  std::vector<float> up;    // (rows, rank), row-major: U S
  std::vector<float> down;  // (rank, columns): V transposed
};

// `matrix`: (rows, columns), row-major. The rank is at most the matrix's shorter side. As ComfyUI's
// LoraSave does, numbers are limited to the 0.99 quantile of those of both factors, in either
// direction. Singular vectors have no sign of their own: here the largest number of each row of
// `down` is positive. Of a matrix of zeros both are zero. REQUIRES: rank, rows and columns are 1 or
// more, and all numbers finite.
LoraFactors extract_lora(std::span<const float> matrix, std::int64_t rows, std::int64_t columns,
                         std::int64_t rank);

// Rounded to f16, to nearest, halves to even; little-endian.
std::vector<std::uint8_t> half_bytes(std::span<const float> numbers);

}  // namespace heddle::loaders
