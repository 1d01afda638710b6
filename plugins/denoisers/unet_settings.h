// plugins/denoisers/unet_settings.h - what readers of a UNet's MODEL are told: its latents, its
// texts, and how it was trained, by the marks that files have. Any thread.
//
// Besides those of heddle/diffusion/values.h, of a few kinds alone:
// task_numbers   list of floats: the input "y", whatever a conditioning says (Lotus)
// concat_levels  int: the input "concat" is a picture of pixels, -1 to 1, with noise of one of so
//                many levels, and that is the input "level" (1) i32 (x4 upscaler)
// noise_first, noise_last  floats: betas of the noise tables "discrete" and "distilled", where they
//                are not Stable Diffusion's (x4 upscaler); the picture's noise grows by them, too
#pragma once

#include <heddle/model.hpp>

#include <cstdint>

#include "unet_names.h"

namespace heddle::denoisers {

// What the tensors say about one model.
struct UnetSizes {
  std::int64_t channels = 0;  // of its first convolution's output
  std::int64_t waves = 0, vector = 0, label = 0;
  std::int64_t latent = 0, more = 0;  // channels that it draws, and reads beside them
  std::int64_t context = 0;           // width of the text's states; 0: it reads no text
  std::int64_t numbers = 0;  // about the picture or the video, behind the pooled text; with a
                             // label, but none of these, it is a model of unCLIP, or of Lotus
  bool is_lotus = false;     // its label says what is to be shown of a picture
  std::int64_t levels = 0;   // of noise in a picture: it is the x4 upscaler
  bool is_linear = false;    // of the transformers' projections
};
// Waves of each number about the picture.
inline constexpr std::int64_t kUnetSizeWaves = 256;

// Throws unsupported at kinds that the family does not build. A ControlNet draws nothing: it reads
// as many channels as its UNet draws.
UnetSizes unet_sizes(const Checkpoint& file, const UnetNames& names);
// What is read of texts and pictures.
void add_text_settings(const UnetSizes& sizes, Blocks& graph);
// All that readers of a model of Stable Video Diffusion are told.
void add_video_settings(const UnetSizes& sizes, Blocks& graph);
void add_unet_settings(const Checkpoint& file, const Value& config, const UnetNames& names,
                       const UnetSizes& sizes, Blocks& graph);

}  // namespace heddle::denoisers
