// plugins/denoisers/preview_factors.h - how latents of the published autoencoders look without
// being decoded, and by which small decoder: the settings "preview_factors" and "preview_decoder"
// (heddle/diffusion/values.h). Used while a family
// builds; any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::denoisers {

enum class LatentKind {
  sd,
  sd_x4,
  sdxl,
  playground,
  sd3,
  flux,
  flux2,
  wan21,
  wan22,
  qwen21,
  ltxv,
  ltx2,
  hunyuan,
  hunyuan15,
  minimax_h3,
  pixels
};

// Does nothing where latents have other channels than those of the published models.
void add_preview_factors(LatentKind kind, std::int64_t channels, Blocks& graph);

}  // namespace heddle::denoisers
