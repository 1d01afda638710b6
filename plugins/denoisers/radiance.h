// plugins/denoisers/radiance.h - what Chroma Radiance has in the place of Chroma's first and last
// layer (radiance_blocks.h). Files mark by tensors without elements how they were trained:
// "__x0__": the model makes the picture itself, not the velocity; "__sequential__": text tokens
// stand one after another. Used while a model is built; one call's thread.
#pragma once

#include <optional>

#include "dual_stream.h"
#include "flux_names.h"

namespace heddle::denoisers {

struct RadianceSizes {
  std::int64_t patch, colours, pixel_width, made;  // made: numbers of a square's matrices
  std::int64_t waves;                              // along a side
  int depth;                                       // networks of squares
  bool is_filtered, makes_picture, is_sequential;
};

// Nothing: the file draws latents. Throws with the file and the tensors where they do not go
// together. `config`: "sequential_text" has text tokens stand one after another in any file.
std::optional<RadianceSizes> find_radiance(const Checkpoint& file, const Value& config,
                                           const FluxNames& names);

// The modules of the file, with the first layer by the name that Chroma has for it.
FindModule radiance_modules(const FluxNames& names);

// All arguments outlive this object.
class RadianceParts {
 public:
  RadianceParts(const Checkpoint& file, const FluxNames& names, const StreamSizes& sizes,
                const RadianceSizes& radiance, Blocks& graph)
      : file_(file), names_(names), s_(sizes), r_(radiance), graph_(graph) {}

  Source embed_image(const Source& x) const;
  AttentionInputs add_rope(const Source& x, const Source& context, const Source& positions) const;
  // hidden (B, T + S, D) -> the velocity (B, C, H, W).
  Source draw(const Source& hidden, const Source& x, const Source& timestep) const;

 private:
  template <class B>
  Source add_final(const Source& pixels, const Source& x, const Source& timestep,
                   const char* module, const char* layer, const Shape& shape) const;

  const Checkpoint& file_;
  const FluxNames& names_;
  const StreamSizes& s_;
  const RadianceSizes& r_;
  Blocks& graph_;
};

}  // namespace heddle::denoisers
