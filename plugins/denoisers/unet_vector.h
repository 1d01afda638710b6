// The block that makes what modulates a UNet: of the timestep, and of what the model is told
// besides the text. Used while a model is built; one call's thread.
#pragma once

#include <optional>

#include <heddle/model.hpp>

#include "unet_names.h"
#include "unet_settings.h"

namespace heddle::denoisers {

struct UnetVectorPlace {
  const Checkpoint& file;
  const UnetNames& names;
  const UnetSizes& sizes;
};
// Adds "embed.vector" with the inputs "y", "sizes" and "level" that the model has. more: added to
// the rest.
Source add_vector(const UnetVectorPlace& place, const Source& timestep,
                  const std::optional<Source>& more, Blocks& graph);

}  // namespace heddle::denoisers
