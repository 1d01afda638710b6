// A 128-bit hash for cache keys: the same input gives the same key on every machine and in every
// later run, because keys are kept on disk. Not cryptographic: whoever can choose the input can
// make two keys equal. The function is XXH3 (xxHash). Hash128 is a plain value; a Hasher is used by
// one thread at a time.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace heddle::engine {

struct Hash128 {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
  auto operator<=>(const Hash128&) const = default;
};

// 32 lower-case digits, high half first: what `xxhsum -H2` prints.
std::string hex(Hash128 hash);

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  // The bytes alone: cutting them into several calls makes no difference.
  Hasher& add(std::span<const std::byte> bytes);

  // The length, then the bytes, so that ("ab", "c") and ("a", "bc") differ.
  Hasher& add(std::string_view text);
  Hasher& add(const char* text) { return add(std::string_view(text)); }

  // 8 bytes, little-endian; int 1 and uint64 1 are equal, int -1 is 2^64-1.
  template <std::integral T>
  Hasher& add(T value) {
    return add_word(static_cast<std::uint64_t>(value));
  }

  // The bits of the number: 0.0 and -0.0 differ.
  Hasher& add(double value);
  Hasher& add(Hash128 hash);

  // The hash of everything added so far; adding may go on.
  Hash128 finish() const;

 private:
  struct State;
  Hasher& add_word(std::uint64_t word);

  std::unique_ptr<State> state_;
};

// The hash of these bytes alone: Hasher().add(bytes).finish(), faster for short ones.
Hash128 hash_bytes(std::span<const std::byte> bytes);

}  // namespace heddle::engine

template <>
struct std::hash<heddle::engine::Hash128> {
  std::size_t operator()(const heddle::engine::Hash128& key) const noexcept { return key.lo; }
};
