// Latent operations: functions of the numbers of a latent, by name. Formulas: ComfyUI's. Pure; any
// thread.
#pragma once

#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include <heddle/node.hpp>

#include "prediction_patch.h"

namespace heddle::samplers {

// "tonemap_reinhard": vectors over channels keep their direction, their lengths are compressed,
// with number "multiplier" of the level that lengths tend to. "sharpen": directions minus their
// Gaussian blur, with numbers "sharpen_radius", "sigma" and "alpha". "blend": so much of the
// reference, brought to the latent's grid by the nearest cells and repeated over the batch, as
// "strength" says. `latent` (B, C, ...) is changed in its place. Throws std::invalid_argument at an
// unknown name, or where a radius reaches beyond the latent.
void apply_latent_operation(std::span<float> latent, const Shape& shape,
                            const PatchNumbers& operation, std::pmr::memory_resource& memory);

}  // namespace heddle::samplers
