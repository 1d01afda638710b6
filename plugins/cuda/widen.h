// Matrices in blocks and of 8 bits, made ready for a product. Enqueues only.
#pragma once

#include "heddle/abi/device.h"
#include "stream.h"

namespace heddle::cuda {

// Whether a matrix has to be widened before a library multiplies it.
bool is_widened(const heddle_tensor_info& weight);

// The scales of a matrix's rows; nullptr: it has none.
const float* scales_of(const heddle_view& weight);

// Writes the matrix, times its scales, row-major as `to`: f32, f16 or bf16, rounded once. REQUIRES:
// is_widened(), columns in multiples of 4.
void widen(Stream& stream, const heddle_view& weight, heddle_dtype to, void* out);

}  // namespace heddle::cuda
