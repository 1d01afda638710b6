// Copies a strided tensor that the host can read to row-major bytes.
#pragma once

#include <cstddef>

#include "heddle/abi/value.h"

namespace heddle::engine {

// src: element (0, ...). dst has dense_bytes(info). Pure; any thread.
void gather(const heddle_tensor_info& info, const std::byte* src, std::byte* dst);

}  // namespace heddle::engine
