// The noise that a sampler draws on its way. One call's thread.
#pragma once

#include <cstdint>
#include <optional>

#include <heddle/node.hpp>

#include "brownian_tree.h"
#include "random.h"
#include "samplers.h"
#include "state_archive.h"

namespace heddle::samplers {

class NoiseSource {
 public:
  // Draws of the generator of `seed` + 1: ComfyUI takes the next seed on the CPU, so as not to
  // repeat the initial noise.
  NoiseSource(Context& ctx, Shape shape, std::uint64_t seed)
      : ctx_(ctx), shape_(std::move(shape)), generator_(seed + 1) {}
  // Increments of one Brownian path, that of `seed` over the levels of the run.
  NoiseSource(Context& ctx, Shape shape, std::uint64_t seed, std::span<const float> levels);

  // All draws from now on are multiplied by this.
  void scale_by(double factor) { scale_ = float(factor); }
  // The draw that `evaluation` wants.
  Tensor draw(const Evaluation& evaluation);
  void archive(StateArchive& state);

 private:
  Context& ctx_;
  Shape shape_;
  Generator generator_;
  std::optional<BrownianTree> path_;
  float scale_ = 1.0f;
};

}  // namespace heddle::samplers
