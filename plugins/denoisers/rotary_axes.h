// plugins/denoisers/rotary_axes.h - how many elements of a head turn with each of three axes. Pure;
// any thread.
#pragma once

#include <array>
#include <cstdint>

#include <heddle/model.hpp>

#include "plugins/blocks/slots.h"

namespace heddle::denoisers {

// The config's "axes_dims_rope", else the model's usual ones. Throws where these are not three even
// numbers whose sum is the head's size.
inline std::array<std::int64_t, 3> rotary_axes(const Checkpoint& file, const Value& config,
                                               std::int64_t head,
                                               std::array<std::int64_t, 3> axes) {
  const Value given = config.field("axes_dims_rope");
  for (std::uint32_t i = 0; i < given.count() && i < axes.size(); ++i)
    axes[i] = given.item(i).as<std::int64_t>();
  bool fits = axes[0] + axes[1] + axes[2] == head && (given.count() == 0 || given.count() == 3);
  for (const std::int64_t axis : axes) fits = fits && axis > 0 && axis % 2 == 0;
  if (!fits)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": rotary axes " + blocks::shape_text({axes[0], axes[1], axes[2]}) +
                    " do not make up a head of size " + std::to_string(head) +
                    ": three even numbers are needed whose sum it is ('axes_dims_rope').");
  return axes;
}

}  // namespace heddle::denoisers
