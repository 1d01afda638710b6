// plugins/denoisers/unet_settings.h - what readers of a UNet's MODEL are told: its latents, its
// texts, and how it was trained, by the marks that files have. Any thread.
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
  std::int64_t numbers = 0;           // about the picture, behind the pooled text; with a label,
                                      // but none of these, it is a model of unCLIP
  bool is_linear = false;             // of the transformers' projections
};
// Waves of each number about the picture.
inline constexpr std::int64_t kUnetSizeWaves = 256;

// Throws unsupported at kinds that the family does not build. A ControlNet draws nothing: it reads
// as many channels as its UNet draws.
UnetSizes unet_sizes(const Checkpoint& file, const UnetNames& names);
// What is read of texts and pictures.
void add_text_settings(const UnetSizes& sizes, Blocks& graph);
void add_unet_settings(const Checkpoint& file, const Value& config, const UnetNames& names,
                       const UnetSizes& sizes, Blocks& graph);

}  // namespace heddle::denoisers
