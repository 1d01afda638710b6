// Numbers that stand in the block formats of gguf files, read on the host: where no device can, as
// a tensor's rows are no whole number of blocks. Pure functions; any thread.
//
// The formats are ggml's (https://github.com/ggml-org/ggml, ggml-common.h): q8_0 to q5_1 have 32
// numbers to a block, the others 256 in groups of 16 or 32 with scales of their own.
#pragma once

#include <cstddef>
#include <span>

#include "engine/tensor/dtype.h"

namespace heddle::engine {

// `dst` gets all numbers of these blocks, each its scales times a small whole number, in f32.
// REQUIRES: q8_0 to q6_k, and whole blocks. Throws Error(unsupported) for another type.
void block_floats(DType dtype, std::span<const std::byte> blocks, float* dst);

}  // namespace heddle::engine
