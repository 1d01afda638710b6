#include "engine/base/hash.h"

#include <xxhash.h>

#include <array>
#include <bit>
#include <new>

namespace heddle::engine {

// XXH3_state_t wants 64-byte alignment, so the library allocates it.
struct Hasher::State {
  State() : xxh(XXH3_createState()) {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::add(std::string_view text) {
  add_word(text.size());
  return add(std::as_bytes(std::span(text.data(), text.size())));
}

Hasher& Hasher::add(double value) { return add_word(std::bit_cast<std::uint64_t>(value)); }

Hasher& Hasher::add(Hash128 hash) { return add_word(hash.lo).add_word(hash.hi); }

Hasher& Hasher::add_word(std::uint64_t word) {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(word >> (8 * i));
  return add(std::span<const std::byte>(bytes));
}

Hash128 Hasher::finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return {.lo = hash.low64, .hi = hash.high64};
}

Hash128 hash_bytes(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.lo = hash.low64, .hi = hash.high64};
}

std::string hex(Hash128 hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::uint64_t half : {hash.hi, hash.lo}) {
    for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[(half >> shift) & 15];
  }
  return out;
}

}  // namespace heddle::engine
