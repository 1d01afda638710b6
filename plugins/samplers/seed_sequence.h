// Seeds that grow from one number, as NumPy's SeedSequence gives them: the same words for the same
// entropy and key. Its hash is that of O'Neill's "Developing a seed_seq alternative" (2015), with
// NumPy's order of mixing. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::samplers {

// `count` words of SeedSequence(entropy, spawn_key=key, pool_size=pool).generate_state(count).
// REQUIRES: pool_size >= 4.
std::vector<std::uint32_t> seed_words(std::uint64_t entropy, std::span<const std::uint64_t> key,
                                      std::size_t pool_size, std::size_t count);

}  // namespace heddle::samplers
