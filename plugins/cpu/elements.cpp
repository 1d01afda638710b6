#include "elements.h"

#include <cstddef>
#include <cstring>

#include "blocks.h"

namespace heddle::cpu {

namespace {

// Through memcpy, because tensors of a mapped file need not be aligned; compilers make plain loads
// of it.
template <class Stored, class Decode>
void load(const void* from, std::int64_t count, std::int64_t stride, float* to, Decode decode) {
  const auto* source = static_cast<const std::byte*>(from);
  const auto at = [source](std::int64_t i) {
    Stored stored;
    std::memcpy(&stored, source + i * std::int64_t{sizeof(Stored)}, sizeof stored);
    return stored;
  };
  if (stride == 1)
    for (std::int64_t i = 0; i < count; ++i) to[i] = decode(at(i));
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = decode(at(i * stride));
}

template <class Stored, class Encode>
void store(const float* from, std::int64_t count, std::int64_t stride, void* to, Encode encode) {
  auto* target = static_cast<Stored*>(to);
  if (stride == 1)
    for (std::int64_t i = 0; i < count; ++i) target[i] = encode(from[i]);
  else
    for (std::int64_t i = 0; i < count; ++i) target[i * stride] = encode(from[i]);
}

}  // namespace

void load_row(heddle_dtype dtype, const void* from, std::int64_t count, std::int64_t stride,
              float* to) {
  if (dtype == HEDDLE_F32)
    load<float>(from, count, stride, to, [](float x) { return x; });
  else if (dtype == HEDDLE_F16)
    load<std::uint16_t>(from, count, stride, to, from_f16);
  else if (dtype == HEDDLE_BF16)
    load<std::uint16_t>(from, count, stride, to, from_bf16);
  else if (dtype == HEDDLE_F8_E4M3)
    load<std::uint8_t>(from, count, stride, to, from_e4m3);
  else if (dtype == HEDDLE_F8_E5M2)
    load<std::uint8_t>(from, count, stride, to, from_e5m2);
  else
    load_blocks(dtype, from, count, to);
}

void store_row(heddle_dtype dtype, const float* from, std::int64_t count, std::int64_t stride,
               void* to) {
  if (dtype == HEDDLE_F32)
    store<float>(from, count, stride, to, [](float x) { return x; });
  else if (dtype == HEDDLE_F16)
    store<std::uint16_t>(from, count, stride, to, to_f16);
  else if (dtype == HEDDLE_BF16)
    store<std::uint16_t>(from, count, stride, to, to_bf16);
  else if (dtype == HEDDLE_F8_E4M3)
    store<std::uint8_t>(from, count, stride, to, to_e4m3);
  else
    store<std::uint8_t>(from, count, stride, to, to_e5m2);
}

}  // namespace heddle::cpu
