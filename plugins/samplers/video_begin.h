// The first frames of a video that are known, as InfiniteTalk wants them: whatever the sampler has
// there, the model sees the frames themselves, without noise. As ComfyUI: what the model makes of
// them counts from what it saw, and in a video that goes on they stand in the result. On the device
// of the call; one call's thread.
#pragma once

#include <optional>

#include <heddle/node.hpp>

#include "model_sampling.h"

namespace heddle::samplers {

class VideoBegin {
 public:
  // Of a model's patches (heddle/diffusion/values.h), for a latent of this shape; none where none
  // tells of such frames. Throws where the latent is no video, or has fewer frames or other sides.
  static std::optional<VideoBegin> of(Context& ctx, const Value& settings, const Shape& latent);

  // A point, or a result, with the frames.
  Tensor in(Context& ctx, const Tensor& point) const;
  bool stays() const { return stays_; }

 private:
  Tensor frames_;  // (1, C, n, h, w) in the model's units
  bool stays_ = false;
};

}  // namespace heddle::samplers
