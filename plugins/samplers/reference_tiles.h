// What models with sparse attention (sparse_attention_node.h) are told of pictures and sounds that
// they are shown: of which of their tokens a mean is made. Each begins a tile of 64 tokens of its
// own. Given where the model's setting "reference_tiles" asks for it. One call's thread, but for
// the shapes, which any thread may ask for.
#pragma once

#include <vector>

#include <heddle/node.hpp>

namespace heddle::samplers {

// The inputs beside "references" and "sound_references".
inline constexpr const char* kReferencePools = "reference_pools";
inline constexpr const char* kSoundPools = "sound_reference_pools";
bool wants_tiles(const Value& settings);

// The tokens of a clip (..., frames, height, width) or picture, and of a sound (..., length) of two
// loudspeakers. `patch`: the cells along the side of a token.
std::int64_t tokens_of_clip(const Shape& samples, std::int64_t patch);
std::int64_t tokens_of_sound(const Shape& samples);

// Of things with so many tokens each: (tiles, tokens), a row for each tile with 1 / its count at
// its tokens, else 0; f32 in host memory.
Shape tile_shape(const std::vector<std::int64_t>& counts);
Tensor tile_pools(Context& ctx, const std::vector<std::int64_t>& counts);
// The same for a list of latents.
Tensor clip_pools(Context& ctx, const Value& latents, std::int64_t patch);
Tensor sound_pools(Context& ctx, const Value& latents);

}  // namespace heddle::samplers
