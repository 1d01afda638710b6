// The noise mask of a LATENT, which keeps a part of a picture while the rest is drawn anew. As
// ComfyUI: before a model call x = x m + noised(latent) (1 - m), after it D = D m + latent (1 - m),
// with m brought to the latent's size bilinearly and not rounded. One call's thread.
#pragma once

#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include <heddle/node.hpp>

#include "latent.h"
#include "prediction.h"

namespace heddle::samplers {

// `mask` (count planes of height x width) at another size: bilinear, corners not aligned, no
// antialiasing, as PyTorch's interpolate(). Pure.
struct PlaneSize {
  std::int64_t height = 0, width = 0;
};
std::pmr::vector<float> resize_planes(std::span<const float> planes, PlaneSize from, PlaneSize to,
                                      std::pmr::memory_resource& memory);

bool has_noise_mask(const Latent& latent);

class NoiseMask {
 public:
  // None when the latent has no mask. `noise` may be an empty tensor: no noise is mixed in.
  static std::optional<NoiseMask> of(Context& ctx, const Latent& latent, const Tensor& samples,
                                     const Tensor& noise);

  Tensor before(Context& ctx, const Tensor& x, const NoiseScaling& scaling) const;
  Tensor after(Context& ctx, const Tensor& denoised) const;

 private:
  Tensor mask_, kept_samples_, kept_noise_;  // m, latent (1 - m), noise (1 - m)
};

}  // namespace heddle::samplers
