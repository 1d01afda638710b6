// The noise mask of a LATENT, which keeps a part of a picture while the rest is drawn anew. As
// ComfyUI: before a model call x = x m + noised(latent) (1 - m), after it D = D m + latent (1 - m),
// with m brought to the latent's size bilinearly, of videos trilinearly, and not rounded. Models
// with the setting mask_clean see latent (1 - m) without noise. One call's thread.
#pragma once

#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include <heddle/node.hpp>

#include "latent.h"
#include "model_sampling.h"

namespace heddle::samplers {

// `mask` (count planes of height x width) at another size: bilinear, corners not aligned, no
// antialiasing, as PyTorch's interpolate(). Pure.
struct PlaneSize {
  std::int64_t height = 0, width = 0;
};
std::pmr::vector<float> resize_planes(std::span<const float> planes, PlaneSize from, PlaneSize to,
                                      std::pmr::memory_resource& memory);

bool has_noise_mask(const Latent& latent);

// Differential diffusion (Levin and Fried 2023): at each level the mask is 1 where it is at least
// the part of the way that is left, in timesteps, and 0 elsewhere.
struct MaskSteps {
  double strength = 1.0;                // below 1: mixed with the mask itself
  float first_time = 0, last_time = 0;  // timesteps of the run
};

class NoiseMask {
 public:
  // None when the latent has no mask. `noise` may be an empty tensor: no noise is mixed in, and
  // none is where `is_clean`. `sampling` is borrowed.
  static std::optional<NoiseMask> of(Context& ctx, const Latent& latent, const Tensor& samples,
                                     const Tensor& noise, const ModelSampling& sampling,
                                     const std::optional<MaskSteps>& steps = {},
                                     bool is_clean = false);

  Tensor before(Context& ctx, const Tensor& x, double sigma);
  // For the level of the last before().
  Tensor after(Context& ctx, const Tensor& denoised) const;
  // m (items, 1, height, width), of videos (items, 1, frames, height, width), f32 in host memory;
  // without steps of differential diffusion.
  const Tensor& planes() const { return planes_; }
  // The planes as readers of the conditioning find them: of pictures and their sound those of the
  // pictures and m of the sound (items, 1, length, bands) in a list.
  Value told() const {
    return parts_.empty() ? value_of(planes_) : list_of({value_of(parts_[0]), value_of(parts_[1])});
  }

 private:
  static NoiseMask of_pair(Context& ctx, const Latent& latent, const Tensor& samples,
                           const Tensor& noise, const ModelSampling& sampling, bool is_clean);
  void set(Context& ctx, std::span<const float> planes, std::pmr::memory_resource& memory);

  const ModelSampling* sampling_ = nullptr;
  Tensor samples_, noise_;  // as they came
  std::optional<MaskSteps> steps_;
  bool is_clean_ = false;
  Tensor planes_;                            // m in host memory
  std::vector<Tensor> parts_;                // of pictures and their sound; planes_ has both
  Tensor mask_, kept_samples_, kept_noise_;  // m, latent (1 - m), noise (1 - m)
};

}  // namespace heddle::samplers
