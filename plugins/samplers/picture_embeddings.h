// Embeddings of pictures as a model's input "y" (unCLIP, and SDXL's "revision"): what CLIP made of
// each picture is mixed with noise by a level of its own, and how much that was stands behind it in
// waves; several are added up, and their sum is mixed with noise once more. As ComfyUI's
// CLIPEmbeddingNoiseAugmentation does, which knows no statistics of embeddings; the schedule is the
// cosine of Nichol and Dhariwal 2021, the noise that of PyTorch on the CPU. One call's thread.
#pragma once

#include <heddle/model.hpp>

#include "plugins/blocks/entry_shapes.h"

namespace heddle::samplers {

inline constexpr const char* kPictureEmbeddings = "unclip_conditioning";

// What a model's settings tell of it: nothing, where it reads none.
struct PictureLayout {
  std::int64_t width = 0;   // of an embedding
  std::int64_t pooled = 0;  // of y: as much, or twice that
  // A model that was trained on pictures alone reads no pooled text in their place.
  bool is_of_pictures() const { return pooled > width; }
};
std::optional<PictureLayout> picture_layout(const Value& settings);

// Refuses an entry with pictures where the model reads none.
void check_pictures(const Value& entry, const Value& model);
// Whether y of this entry is made of pictures, or of nothing at all.
bool is_of_pictures(const Value& entry, const std::optional<PictureLayout>& layout);
// y, (1, pooled) f32 in host memory; zeros for an entry without pictures. `seed`: of the run.
Tensor pictures_of(Context& ctx, const Value& entry, const PictureLayout& layout,
                   std::uint64_t seed);

}  // namespace heddle::samplers
