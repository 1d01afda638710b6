#include "tests/support/seeded_weights.h"

#include <cstring>

namespace heddle::test::seeded {

std::uint32_t hash_of(const std::string& name) {
  std::uint32_t value = 0x811C9DC5u;
  for (const char byte : name) value = (value ^ std::uint8_t(byte)) * 0x01000193u;
  return value;
}

float number_at(std::uint32_t start, std::uint32_t index) {
  std::uint32_t x = start + index * 0x9E3779B9u;
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  x ^= x >> 16;
  return float(x >> 8) * 0x1p-23f - 1.0f;
}

std::string number_bytes(std::uint32_t start, std::size_t count, float factor, float offset) {
  std::string bytes(count * sizeof(float), '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const float value = offset + number_at(start, std::uint32_t(i)) * factor;
    std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof value);
  }
  return bytes;
}

}  // namespace heddle::test::seeded
