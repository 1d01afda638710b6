// plugins/denoisers/wan_humo.h - what a graph of Wan has more where the file is of HuMo: a
// reference picture behind the video's frames, and layers that look at a sound. Used while a graph
// is built; any thread.
#pragma once

#include <heddle/model.hpp>

#include "plugins/blocks/slots.h"
#include "wan_names.h"
#include "wan_sizes.h"

namespace heddle::denoisers {

class WanHumo {
 public:
  // All outlive it. x: the latent.
  WanHumo(const Checkpoint& file, const WanNames& names, const WanSizes& sizes, double eps,
          Blocks& graph, const Source& x);

  // Tokens of the reference, for the rotary table.
  const Source& shown() const { return shown_; }
  // hidden with them behind it.
  Source begin(const Source& hidden) const;
  // What a layer, a WanHumoLayer, reads besides. at: of its tensors, "blocks.0.".
  void add_to(Block& block, const std::string& path, const std::string& at) const;

 private:
  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const;
  Source add_sound_of_frames(const Source& reference) const;

  const Checkpoint& file_;
  const WanNames& names_;
  const WanSizes& s_;
  const double eps_;
  Blocks& graph_;
  const Source x_;
  Source shown_, heard_;
};

// Of the file: 0 parts where it is of another model. Throws where sizes contradict each other.
HumoSizes read_humo_sizes(const Checkpoint& file, const WanNames& names);

// The settings: what goes in beside the video.
void add_humo_settings(const WanSizes& s, Blocks& graph);

}  // namespace heddle::denoisers
