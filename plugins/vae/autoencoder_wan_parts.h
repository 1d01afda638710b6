// plugins/vae/autoencoder_wan_parts.h - a side of the causal autoencoders in the order in which
// data passes it, and divided into stages (autoencoder_wan_video.h). Pure; any thread.
#pragma once

#include <heddle/model.hpp>

#include <string>
#include <vector>

#include "autoencoder_wan_names.h"

namespace heddle::vae {

// A level and its shortcut only where levels have one.
enum class PartKind { in, resnet, attention, resample, level, shortcut, out };
struct SidePart {
  PartKind kind;
  std::string path, module = {};
  std::string time_conv = {};  // of a change of size that changes the frames, too
  bool changes_size = false, changes_time = false;  // the level of a shortcut does
  std::size_t stage = 0;
};
// Throws where there are more changes of size than any such autoencoder has (halvings.h).
std::vector<SidePart> parts_of(const Checkpoint& file, const WanNames& names, VaeSide side);

// How often the sides of pictures are halved or doubled.
std::int64_t resamples_of(const std::vector<SidePart>& parts);

// Pixels along a side of what the first and the last convolution take as one: 2, or 1.
std::int64_t wan_patch(const Checkpoint& file, const WanNames& names, VaeSide side);

// Throws where no shortcut goes around a level from so many channels to so many.
struct ShortcutSizes {
  std::int64_t from, to, frames;
};
void require_shortcut(const Checkpoint& file, const std::string& path, bool is_up,
                      const ShortcutSizes& sizes);

}  // namespace heddle::vae
