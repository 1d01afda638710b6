// Pictures of a run under way: what the model sees at a step, made visible by the linear map from
// latent channels to colours that a MODEL's settings give ("preview_factors",
// heddle/diffusion/values.h), or decoded by the small decoder that they name ("preview_decoder").
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

// What a run shows of itself.
class Previews {
 public:
  // Opens the decoder's file where the run asked for it; where there is none, or it is no decoder,
  // a warning says so, and the map is shown.
  Previews(Context& ctx, const Value& settings);

  // Shows the first item of scaled latents (batch, channels, height, width), and of a video its
  // first frame, at step `step` (from 1); waits for it. To the map four times as many channels as
  // it has are a cell of 2 x 2 places each. Does nothing for latents of another kind, and where
  // nobody looks.
  void show(const Tensor& latents, std::uint32_t step, std::uint32_t step_count);

 private:
  bool show_decoded(const Tensor& latents, std::uint32_t step, std::uint32_t step_count);
  void show_mapped(const Tensor& latents, std::uint32_t step, std::uint32_t step_count);

  Context& ctx_;
  std::optional<PreviewMap> map_;
  Value decoder_;  // a model; empty: none
};

}  // namespace heddle::samplers
