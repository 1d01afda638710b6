// plugins/denoisers/wan_speakers.h - which of two speakers each token of a video is like, and how
// queries and keys are turned by that (wan_talk_blocks.h). Used in blocks, as they are traced; any
// thread.
#pragma once

#include <utility>

#include <heddle/node.hpp>

namespace heddle::denoisers {

// Places of a speaker: from 0 to 4 of the first, from 20 to 24 of the second. Keys have the middle.
inline constexpr double kSpeakerSpan = 4, kSecondSpeaker = 20;

// cos and sin (n, d/2) f32 of heads of d numbers at places (n, 1).
std::pair<Tensor, Tensor> speaker_table(Context& ctx, const Tensor& places, std::int64_t head);

// The places (L, 1) f32 of one item's tokens: own (1, L, 3 D), their queries, keys, rotated, and
// values, of which the first frame's, as many as marks (1, S, D) has, are of the picture that is
// shown. A token is of the speaker at whose region of that frame it looks most; its place is how
// much it looks there, between the least and the most that any token does. shares: 1 over the
// tokens of each region.
Tensor speaker_places(Context& ctx, const Tensor& own, const Tensor& marks, const Tensor& shares,
                      std::int64_t heads);

}  // namespace heddle::denoisers
