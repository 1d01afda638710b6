// plugins/denoisers/ltxv_guides.h - guides of LTX-Video and LTX 2 (LTXVAddGuide): frames behind the
// video's own in the latent, that stand at told pictures of the video, may have fewer tokens than
// the latent has places, and may be attended to more or less. Used in blocks, as they are traced;
// any thread.
#pragma once

#include <heddle/model.hpp>
#include <heddle/node.hpp>

namespace heddle::denoisers {

// Of a model: "guide_frames", "token_rows", "token_places" and "guide_weights", all optional.
// Blocks say what they are.
struct GuideInputs {
  Source frames, rows, places, weights;
};
GuideInputs guide_inputs(Blocks& graph);

// Puts the places of the last K frames of `frames` into ids (L, 3), those of the tokens of all of
// them, in pictures, rows and columns. guides (K, 2) f32: the pictures at which each begins and
// ends; a frame stands where it begins, or, `in_middle`, halfway. guides (K, 3) tells as well how
// many rows and columns a token of the frame is for, in the middle of which it stands then. Throws
// where there are more of them.
void put_guides(Context& ctx, const Tensor& guides, const Tensor& ids, std::int64_t frames,
                bool in_middle);

// The rows (T) i32 of x (L, D) or of each item of x (B, L, D), f32: (T, D) or (B, T, D).
Tensor chosen_rows(Context& ctx, const Tensor& x, const Tensor& rows);
// The same, where the row L is one of zeros.
Tensor rows_or_zeros(Context& ctx, const Tensor& x, const Tensor& rows);

// The attention of a video's tokens, T of them, to themselves. With weights (G) f32, logarithms,
// the last G tokens are of guides: what the others see of each, and what it sees of the others,
// counts so much.
class GuidedAttention {
 public:
  // weights: may be empty.
  GuidedAttention(Context& ctx, const Tensor& weights, std::int64_t tokens);

  // Queries (B, n, H, d) of the tokens from `first` on; keys and values of all.
  void into(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t first,
            const Tensor& out) const;

 private:
  Tensor bias_of_guides(std::int64_t begin, std::int64_t end) const;

  Context& ctx_;
  Tensor weights_, seen_by_others_;
  std::int64_t tokens_, own_;
};

}  // namespace heddle::denoisers
