// plugins/denoisers/rotary_axes.h - how many elements of a head turn with each axis. Pure;
// any thread.
#pragma once

#include <array>
#include <cstdint>

#include <heddle/model.hpp>

#include "plugins/blocks/slots.h"

namespace heddle::denoisers {

// The config's "axes_dims_rope", else the model's usual ones. Throws where these are not so many
// even numbers whose sum is the head's size.
template <std::size_t count = 3>
std::array<std::int64_t, count> rotary_axes(const Checkpoint& file, const Value& config,
                                            std::int64_t head,
                                            std::array<std::int64_t, count> axes) {
  const Value given = config.field("axes_dims_rope");
  for (std::uint32_t i = 0; i < given.count() && i < axes.size(); ++i)
    axes[i] = given.item(i).as<std::int64_t>();
  std::int64_t sum = 0;
  bool fits = given.count() == 0 || given.count() == count;
  for (const std::int64_t axis : axes) {
    fits = fits && axis > 0 && axis % 2 == 0;
    sum += axis;
  }
  fits = fits && sum == head;
  if (!fits)
    throw Error(
        HEDDLE_INVALID_ARGUMENT,
        file.path() + ": rotary axes " + blocks::shape_text(Shape(axes.begin(), axes.end())) +
            " do not make up a head of size " + std::to_string(head) + ": " +
            std::to_string(count) + " even numbers are needed whose sum it is ('axes_dims_rope').");
  return axes;
}

}  // namespace heddle::denoisers
