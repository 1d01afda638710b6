#include "seed_sequence.h"

namespace heddle::samplers {
namespace {

constexpr std::uint32_t kInitA = 0x43b0d7e5, kMultiplyA = 0x931e8875;
constexpr std::uint32_t kInitB = 0x8b51f9dd, kMultiplyB = 0x58f38ded;
constexpr std::uint32_t kMixLeft = 0xca01f9dd, kMixRight = 0x4973f715;

constexpr std::uint32_t folded(std::uint32_t value) { return value ^ (value >> 16); }

// A hash whose constant moves on with every value.
class MovingHash {
 public:
  MovingHash(std::uint32_t constant, std::uint32_t multiplier)
      : constant_(constant), multiplier_(multiplier) {}
  std::uint32_t operator()(std::uint32_t value) {
    value ^= constant_;
    constant_ *= multiplier_;
    return folded(value * constant_);
  }

 private:
  std::uint32_t constant_, multiplier_;
};

std::uint32_t mix(std::uint32_t a, std::uint32_t b) { return folded(kMixLeft * a - kMixRight * b); }

// Little-endian words without leading zeros; 0 is one word.
void append_words(std::uint64_t number, std::vector<std::uint32_t>& to) {
  to.push_back(static_cast<std::uint32_t>(number));
  if (number >> 32 != 0) to.push_back(static_cast<std::uint32_t>(number >> 32));
}

}  // namespace

std::vector<std::uint32_t> seed_words(std::uint64_t entropy, std::span<const std::uint64_t> key,
                                      std::size_t pool_size, std::size_t count) {
  std::vector<std::uint32_t> words;
  append_words(entropy, words);
  // So that no key looks like a part of the entropy.
  if (!key.empty() && words.size() < pool_size) words.resize(pool_size, 0);
  for (const std::uint64_t part : key) append_words(part, words);

  MovingHash hash(kInitA, kMultiplyA);
  std::vector<std::uint32_t> pool;
  for (std::size_t i = 0; i < pool_size; ++i) pool.push_back(hash(i < words.size() ? words[i] : 0));
  for (std::size_t from = 0; from < pool_size; ++from) {
    for (std::size_t to = 0; to < pool_size; ++to) {
      if (from != to) pool[to] = mix(pool[to], hash(pool[from]));
    }
  }
  for (std::size_t from = pool_size; from < words.size(); ++from) {
    for (std::uint32_t& to : pool) to = mix(to, hash(words[from]));
  }

  MovingHash output(kInitB, kMultiplyB);
  std::vector<std::uint32_t> state;
  for (std::size_t i = 0; i < count; ++i) state.push_back(output(pool[i % pool_size]));
  return state;
}

}  // namespace heddle::samplers
