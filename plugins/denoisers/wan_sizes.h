// plugins/denoisers/wan_sizes.h - the sizes of a model of Wan, read off its tensors, and what it
// tells those that call it. Any thread.
#pragma once

#include <array>

#include <heddle/model.hpp>

#include "wan_names.h"

namespace heddle::denoisers {

inline constexpr std::int64_t kChannelsOf22 = 48;  // of the latent of Wan 2.2's 5B

// Of a model's configuration: it follows poses, as Wan Animate 2 does, whose files have the tensors
// of a model that is shown pictures and no others.
inline constexpr const char* kFollowsPoses = "follows_poses";

// Of the layers of VACE beside the model's own: none where it has none.
struct VaceSizes {
  std::int64_t channels;
  int layers;
};

// Of what the model sees of pictures by a vision model: 0 where it sees none.
struct WanVisionSizes {
  std::int64_t width;
  bool has_positions;
};

// Of Wan 2.2 Animate: layers that look at a face (0: another model), how often its motion encoder
// halves a picture, pixels along a side of that. follows_poses: as Animate 2 does. masks: channels
// of coloured masks that SCAIL 2 reads (0: another model).
struct AnimateSizes {
  int adapters, halvings;
  std::int64_t face_side;
  bool follows_poses;
  std::int64_t masks;
};

// Of what Wan Fun reads besides: numbers of a camera in a cell, channels of a picture before the
// video. 0: the model reads none.
struct FunSizes {
  std::int64_t camera, reference;
};

// Of HuMo, which looks at a sound in each layer: tokens of it in a frame (0: another model), their
// width, numbers of a state that is heard.
struct HumoSizes {
  std::int64_t parts, width, numbers;
};

// Of WanDancer: numbers of a moment of a music (0: another model), width and layers of what reads
// them, layers of the model that they are added behind.
struct MusicSizes {
  std::int64_t numbers, width;
  int layers, looks;
};

// Of Wan 2.2 S2V: layers that look at a sound (0: another model); of each moment that is heard, how
// many states an encoder of sound gives, and their numbers; tokens of it in a frame.
struct WanSoundSizes {
  int injectors;
  std::int64_t states, numbers, parts;
  HumoSizes humo;
  MusicSizes music;

  bool is_heard() const { return injectors > 0 || humo.parts > 0; }
  bool is_music() const { return music.numbers > 0; }
};

// is_causal: it draws a video block by block of its frames.
struct WanTraits {
  bool has_text_norm, is_causal;
};

struct WanSizes {
  std::int64_t width, heads, mlp, waves, text, in_channels, channels;
  int layers;
  VaceSizes vace;
  FunSizes fun;
  AnimateSizes animate;
  WanSoundSizes sound;
  WanVisionSizes vision;
  std::array<std::int64_t, 3> axes;
  WanTraits traits;

  std::int64_t head() const { return width / heads; }
  bool sees_pictures() const { return vision.width > 0; }
  bool may_follow_poses() const {
    return sees_pictures() && !vision.has_positions && in_channels > 2 * channels &&
           in_channels < 3 * channels && vace.layers == 0 && animate.adapters == 0 &&
           !sound.is_heard() && !sound.is_music() && fun.camera == 0 && fun.reference == 0;
  }
  // Its tokens are those of the video alone, in one stream.
  bool takes_patches() const {
    return !traits.is_causal && vace.layers == 0 && animate.adapters == 0 &&
           !animate.follows_poses && animate.masks == 0 && !sound.is_heard() && !sound.is_music() &&
           fun.reference == 0;
  }
  // Videos and pictures beside the one that it draws, as Bernini does.
  bool takes_sources() const {
    return takes_patches() && in_channels == channels && fun.camera == 0 && !tells_frames();
  }
  // Other tokens may be behind those of the video.
  bool has_tokens_behind() const {
    return sound.is_heard() || animate.masks > 0 || takes_sources();
  }
  // How noisy each frame is.
  bool tells_frames() const { return channels == kChannelsOf22; }
};

// Throws where the file lacks a tensor, or sizes contradict each other.
WanSizes read_wan_sizes(const Checkpoint& file, const Value& config, const WanNames& names);

// The settings: what samplers and nodes read about latents, noise and inputs.
void add_wan_settings(const WanSizes& s, Blocks& graph);

}  // namespace heddle::denoisers
