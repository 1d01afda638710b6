// The ways to composite of Porter and Duff ("Compositing Digital Images", 1984) and those that came
// with them, over colours that are multiplied by their alpha: s of the source, d of what is below.
// Pure functions; any thread.
#pragma once

#include <string>

namespace heddle::image {

enum class PorterDuff {
  add,
  clear,
  darken,
  dst,
  dst_atop,
  dst_in,
  dst_out,
  dst_over,
  lighten,
  multiply,
  overlay,
  screen,
  src,
  src_atop,
  src_in,
  src_out,
  src_over,
  exclusive
};

// By its name in capitals: "SRC_OVER", "XOR". REQUIRES: there is such a mode.
PorterDuff porter_duff_named(const std::string& name);

float porter_duff_alpha(PorterDuff mode, float sa, float da);
float porter_duff_colour(PorterDuff mode, float s, float sa, float d, float da);

}  // namespace heddle::image
