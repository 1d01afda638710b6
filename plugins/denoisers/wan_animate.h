// plugins/denoisers/wan_animate.h - what a graph of Wan has more where the file is of Wan 2.2
// Animate: the poses that are added to the latent's tokens, and layers that look at a face. Used
// while a graph is built; any thread.
#pragma once

#include <optional>

#include <heddle/model.hpp>

#include "wan_names.h"
#include "wan_sizes.h"

namespace heddle::denoisers {

class WanAnimate {
 public:
  // All outlive it. x: the latent.
  WanAnimate(const Checkpoint& file, const WanNames& names, const WanSizes& sizes, double eps,
             Blocks& graph, const Source& x)
      : file_(file), names_(names), s_(sizes), eps_(eps), graph_(graph), x_(x) {}

  // hidden with the poses; what faces do is embedded, too.
  Source begin(const Source& hidden);
  // hidden behind layer i, with what it sees of a face where the model has it look there.
  Source behind(int layer, const Source& hidden);

 private:
  Source add_motion();
  Source add_face(const Source& motion);

  const Checkpoint& file_;
  const WanNames& names_;
  const WanSizes& s_;
  const double eps_;
  Blocks& graph_;
  const Source x_;
  Source face_;
};

// Of the file: 0 adapters where it is of another model. Throws where sizes contradict each other.
AnimateSizes read_animate_sizes(const Checkpoint& file, const WanNames& names, int layers);

}  // namespace heddle::denoisers
