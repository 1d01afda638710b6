// The colours of a picture that SeedVR2 drew, brought to those of the picture that it was drawn
// from. Sources: the low frequencies by holes between samples ("a trous", StableSR), CIE Lab by
// CIE 15 with D65, histograms by order, means and deviations by AdaIN (arXiv:1703.06868); constants
// as in ComfyUI. Host memory, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory_resource>
#include <span>
#include <string_view>

namespace heddle::image {

// Three planes of height x width numbers, one behind the other, about [-1, 1].
struct ColourPlanes {
  std::int64_t height = 0, width = 0;
  std::span<float> values;

  std::int64_t size() const { return height * width; }
  float* plane(std::int64_t c) const { return values.data() + c * size(); }
};

// Changes `drawn`, by "lab", "wavelet" or "adain"; afterwards it is within [-1, 1]. What is needed
// besides comes from `memory`. `ask` is called now and then, and may throw. REQUIRES: both have
// one size.
void match_colours(std::string_view method, const ColourPlanes& drawn,
                   const ColourPlanes& reference, std::pmr::memory_resource& memory,
                   const std::function<void()>& ask);

// What that takes of `memory` at most, in bytes.
std::uint64_t colour_match_bytes(std::int64_t height, std::int64_t width);

}  // namespace heddle::image
