// plugins/denoisers/wan_fun.h - what a graph of Wan has more where the file is of Wan Fun: a
// picture as the frame before the video's first, and the rays of a camera. Used while a graph is
// built; any thread.
#pragma once

#include <optional>

#include <heddle/model.hpp>

#include "wan_names.h"
#include "wan_sizes.h"

namespace heddle::denoisers {

class WanFun {
 public:
  // All outlive it.
  WanFun(const Checkpoint& file, const WanNames& names, const WanSizes& sizes, Blocks& graph)
      : file_(file), names_(names), s_(sizes), graph_(graph) {}

  // Tokens of the picture.
  Source embed_reference() const;
  // hidden with what the camera adds, behind the picture's tokens.
  Source join(const Source& hidden, const std::optional<Source>& reference) const;

 private:
  Source embed_camera() const;

  const Checkpoint& file_;
  const WanNames& names_;
  const WanSizes& s_;
  Blocks& graph_;
};

}  // namespace heddle::denoisers
