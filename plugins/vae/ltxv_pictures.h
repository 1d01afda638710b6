// Pictures that LTX-Video's nodes put into a latent. One call's thread.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/resample.h"

namespace heddle::vae {

inline constexpr std::int64_t kLtxvFrames =
    8;  // of a video for each of the latent, but for the first

// Pictures that make whole frames of the latent; ComfyUI leaves out the rest, too.
constexpr std::int64_t whole_ltxv_frames(std::int64_t pictures) {
  return pictures < 1 ? 0 : (pictures - 1) / kLtxvFrames * kLtxvFrames + 1;
}
constexpr std::int64_t ltxv_latent_frames(std::int64_t pictures) {
  return (pictures - 1) / kLtxvFrames + 1;
}

// The first of the pictures (T, H, W, C), or their beginning behind the first one once more.
struct LtxvPictures {
  std::int64_t count = 0;  // of whole_ltxv_frames()
  bool repeats_first = false;
};
// These, cut in the middle and resized, encoded: a LATENT of one video. `image` names the input.
// Throws where they are no pictures, or the autoencoder is of pictures alone.
Record encoded_ltxv_pictures(Context& ctx, const Value& vae, const Tensor& image,
                             const LtxvPictures& which, const blocks::GridSize& to);

// Tells of the call of the encoder for so many pictures; cells: of a frame of the latent.
void tell_ltxv_pictures(Infer& question, const Value& vae, const Autoencoder& autoencoder,
                        std::int64_t count, const blocks::GridSize& cells);

}  // namespace heddle::vae
