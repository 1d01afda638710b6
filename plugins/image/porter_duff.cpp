#include "plugins/image/porter_duff.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace heddle::image {
namespace {

constexpr std::string_view kModes[] = {
    "ADD",      "CLEAR",   "DARKEN", "DST", "DST_ATOP", "DST_IN", "DST_OUT", "DST_OVER", "LIGHTEN",
    "MULTIPLY", "OVERLAY", "SCREEN", "SRC", "SRC_ATOP", "SRC_IN", "SRC_OUT", "SRC_OVER", "XOR"};

}  // namespace

PorterDuff porter_duff_named(const std::string& name) {
  return PorterDuff(std::find(std::begin(kModes), std::end(kModes), name) - std::begin(kModes));
}

float porter_duff_alpha(PorterDuff mode, float sa, float da) {
  switch (mode) {
    case PorterDuff::add:
      return std::clamp(sa + da, 0.0f, 1.0f);
    case PorterDuff::clear:
      return 0;
    case PorterDuff::darken:
    case PorterDuff::lighten:
    case PorterDuff::overlay:
    case PorterDuff::screen:
      return sa + da - sa * da;
    case PorterDuff::dst:
    case PorterDuff::src_atop:
      return da;
    case PorterDuff::src:
    case PorterDuff::dst_atop:
      return sa;
    case PorterDuff::dst_in:
    case PorterDuff::src_in:
    case PorterDuff::multiply:
      return sa * da;
    case PorterDuff::dst_out:
      return (1 - sa) * da;
    case PorterDuff::dst_over:
      return da + (1 - da) * sa;
    case PorterDuff::src_out:
      return (1 - da) * sa;
    case PorterDuff::src_over:
      return sa + (1 - sa) * da;
    case PorterDuff::exclusive:
      return (1 - da) * sa + (1 - sa) * da;
  }
  return 0;
}

float porter_duff_colour(PorterDuff mode, float s, float sa, float d, float da) {
  switch (mode) {
    case PorterDuff::add:
      return std::clamp(s + d, 0.0f, 1.0f);
    case PorterDuff::clear:
      return 0;
    case PorterDuff::darken:
      return (1 - da) * s + (1 - sa) * d + std::min(s, d);
    case PorterDuff::lighten:
      return (1 - da) * s + (1 - sa) * d + std::max(s, d);
    case PorterDuff::overlay:
      return 2 * d < da ? 2 * s * d : sa * da - 2 * (da - d) * (sa - s);
    case PorterDuff::screen:
      return s + d - s * d;
    case PorterDuff::dst:
      return d;
    case PorterDuff::src:
      return s;
    case PorterDuff::dst_atop:
      return sa * d + (1 - da) * s;
    case PorterDuff::src_atop:
      return da * s + (1 - sa) * d;
    case PorterDuff::dst_in:
      return d * sa;
    case PorterDuff::src_in:
      return s * da;
    case PorterDuff::multiply:
      return s * d;
    case PorterDuff::dst_out:
      return (1 - sa) * d;
    case PorterDuff::src_out:
      return (1 - da) * s;
    case PorterDuff::dst_over:
      return d + (1 - da) * s;
    case PorterDuff::src_over:
      return s + (1 - sa) * d;
    case PorterDuff::exclusive:
      return (1 - da) * s + (1 - sa) * d;
  }
  return 0;
}

}  // namespace heddle::image
