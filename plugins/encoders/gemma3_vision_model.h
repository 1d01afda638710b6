// plugins/encoders/gemma3_vision_model.h - what Gemma 3 sees of a picture (language_model.h, input
// "pictures"): SigLIP's vision tower (siglip.h) and the projector behind it.
//
// Input    picture   (1, H, H, 3) f32   loop-invariant  normalised, of the tower's size
// Output   tokens    (1, M, T) f32      M = (n / merge)^2 of n x n patches, row after row; T the
//                                       language model's width
//
// Source of the architecture: transformers' SiglipVisionModel and Gemma3MultiModalProjector: means
// of merge x merge patches behind the tower's last norm, an RMS norm by 1 + weight, and a matrix
// without a bias, which the file has as (D, T). Published are 64 x 64 patches of 14 pixels, of
// which 4 x 4 make a token: 256 of a picture of 896 pixels. Sizes are read off the tensors; the
// config may give "mm_tokens_per_image", and in its "vision_config" what siglip.h reads. Names are
// those of the files for ComfyUI ("vision_model.", "multi_modal_projector.") or transformers'.
// Settings: "width" T, "side" H, "unit" the pixels of a token's side, "token", the id that stands
// in the place of each, "counts_on", that they are counted as words are, "pixel_mean" and
// "pixel_deviation". Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::encoders {

// The token that a picture takes the place of. The files' SentencePiece models lack it: its id is
// the next behind their pieces, and the model's table has a row for it.
inline constexpr const char* kGemma3Picture = "<image_soft_token>";
// Whether the file has Gemma 3's projector.
bool sees_as_gemma3(const Checkpoint& file);

// hidden (1, n^2, D) -> tokens (1, M, T): means of merge x merge patches, under an RMS norm by
// 1 + weight, through a matrix.
struct Gemma3Project {
  static constexpr Info info{"gemma3_vision.project", 1,  "Gemma 3 vision tower, tokens",
                             "blocks/language",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> side{"side", Widget{.number = 64}, "n"};
  static constexpr Input<std::int64_t> merge{"merge", Widget{.number = 4},
                                             "patches of a token's side"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight matrix{"matrix"};  // (D, T)
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(hidden, side, merge, eps, norm, matrix, out);
  static void execute(Context& ctx);
};

struct Gemma3Vision {
  static constexpr Family family{"gemma3_vision", "vision_encoder", 1,
                                 "what Gemma 3 sees pictures with"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
