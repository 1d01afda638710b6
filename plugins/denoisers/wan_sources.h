// plugins/denoisers/wan_sources.h - what a graph of Wan has more where its tokens may be joined by
// those of videos and pictures that it looks at, as Bernini does, whose files have the tensors of
// any Wan that draws from texts. Used while a graph is built; any thread.
#pragma once

#include <utility>

#include <heddle/model.hpp>

#include "wan_names.h"
#include "wan_sizes.h"

namespace heddle::denoisers {

class WanSources {
 public:
  // All outlive it. x: the latent.
  WanSources(const Checkpoint& file, const WanNames& names, const WanSizes& sizes, Blocks& graph,
             const Source& x)
      : file_(file), names_(names), s_(sizes), graph_(graph), x_(x) {}

  // The rotary table, cos and sin.
  std::pair<Source, Source> rope() const;
  // hidden with the sources' tokens behind it.
  Source begin(const Source& hidden) const;

 private:
  const Checkpoint& file_;
  const WanNames& names_;
  const WanSizes& s_;
  Blocks& graph_;
  const Source x_;
};

}  // namespace heddle::denoisers
