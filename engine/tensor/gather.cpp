#include "engine/tensor/gather.h"

#include <cstring>

#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

void gather(const heddle_tensor_info& info, const std::byte* src, std::byte* dst) {
  if (is_contiguous(info)) {
    // Of a tensor without elements neither needs to be memory.
    if (const std::uint64_t bytes = dense_bytes(info); bytes > 0) std::memcpy(dst, src, bytes);
    return;
  }
  const std::size_t element = dtype_size(DType(info.dtype));
  std::int64_t index[HEDDLE_MAX_RANK] = {};
  for (std::int64_t left = element_count(info); left > 0; --left) {
    std::int64_t at = 0;
    for (std::uint32_t i = 0; i < info.rank; ++i) at += index[i] * info.stride[i];
    std::memcpy(dst, src + at * std::int64_t(element), element);
    dst += element;
    for (std::uint32_t i = info.rank; i-- > 0 && ++index[i] == info.shape[i];) index[i] = 0;
  }
}

}  // namespace heddle::engine
