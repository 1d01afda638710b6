// Pictures of a run under way: what the model sees at a step, made visible by the linear map from
// latent channels to colours that a MODEL's settings give ("preview_factors",
// heddle/diffusion/values.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::samplers {

class PreviewMap {
 public:
  // Nothing when the settings give no map, or one that is none: previews are no reason to fail.
  static std::optional<PreviewMap> of(const Value& settings);

  std::size_t channels() const { return factors_.size() / 3 - 1; }

  // Scaled latents (channels, positions) to (positions, red green blue). REQUIRES: as many channels
  // as the map has.
  std::vector<std::uint8_t> pixels(std::span<const float> latents) const;

 private:
  std::vector<float> factors_;  // (channels, 3), then what is added to all
};

// Shows the first item of (batch, channels, height, width), of step `step` (from 1); waits for it.
// Of four times as many channels as the map has, four are a cell of 2 x 2 places. Does nothing for
// latents of another kind.
void show_preview(Context& ctx, const PreviewMap& map, const Tensor& latents, std::uint32_t step,
                  std::uint32_t step_count);

}  // namespace heddle::samplers
