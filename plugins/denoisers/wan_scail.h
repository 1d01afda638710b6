// plugins/denoisers/wan_scail.h - what a graph of Wan has more where the file is of SCAIL 2:
// reference pictures, a video of poses and coloured masks of both. Used while a graph is built; any
// thread.
#pragma once

#include <utility>

#include <heddle/model.hpp>

#include "plugins/blocks/slots.h"
#include "wan_names.h"
#include "wan_sizes.h"

namespace heddle::denoisers {

class WanScail {
 public:
  // All outlive it. x: the latent.
  WanScail(const Checkpoint& file, const WanNames& names, const WanSizes& sizes, Blocks& graph,
           const Source& x);

  // The rotary table, cos and sin.
  std::pair<Source, Source> rope() const;
  // hidden with what is shown behind it.
  Source begin(const Source& hidden) const;

 private:
  template <class B>
  Source add_filter(const std::string& path, const std::string& module, const Source& given,
                    std::int64_t channels) const;

  const Checkpoint& file_;
  const WanNames& names_;
  const WanSizes& s_;
  Blocks& graph_;
  const Source x_, reference_, pose_;
};

// Channels of masks that it reads; 0: the file is of another model. Throws for the first SCAIL,
// which reads none.
std::int64_t read_scail_masks(const Checkpoint& file, const WanNames& names);

// The settings: what goes in beside the video.
void add_scail_settings(const WanSizes& s, Blocks& graph);

}  // namespace heddle::denoisers
