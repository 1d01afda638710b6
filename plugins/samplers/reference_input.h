// Pictures that a model is shown beside the one that it draws. Either as tokens behind those of its
// own picture, each with a place of its own (its inputs "references" and "reference_positions"):
// FLUX.1 Kontext, FLUX.2, Qwen-Image Edit. Where they lie is ComfyUI's rule
// (reference_latents_method). Or as latents among the tokens of the text (its inputs "reference.0"
// and "slot.0" ...): Qwen-Image 2.1. Or as tokens at a picture of the video that is drawn, or
// before it, which each of them tells ("frame", "time"): MiniMax H3 (clip_references.cpp). One
// call's thread.
#pragma once

#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "model_sampling.h"
#include "plugins/blocks/entry_shapes.h"

namespace heddle::samplers {

// How a model reads pictures as tokens: a square of `patch` cells of all channels is one.
struct ReferenceLayout {
  std::int64_t channels = 0, patch = 1;
  std::string method;     // where they lie when nothing says so
  std::int64_t step = 1;  // between their places on the first axis, by the method "index"
  bool centred = false;  // a picture's middle is its origin, and the text begins behind all of them
  bool timed = false;    // they may have a timestep of their own
  bool has_frames = false;  // the latent that is drawn may be of several pictures
  std::int64_t slots = 0;   // they stand among the text, at most so many; 0: behind the picture
  bool has_clips = false;   // they stand at times of their own, and are clips or single ones

  std::int64_t tokens_along(std::int64_t cells) const { return (cells + patch - 1) / patch; }
};

// The numbers of one picture, in the model's units.
struct Reference {
  Shape shape;  // (rows, channels, height, width)
  std::pmr::vector<float> values;
};

// Of a record of reference_latents. Throws where it is no latent of the model's channels.
Reference read_reference(Context& ctx, const Value& record, const ReferenceLayout& layout,
                         const LatentFormat& format, std::pmr::memory_resource& memory);

// None: the model is shown no pictures.
std::optional<ReferenceLayout> reference_layout(const Value& settings);

// Throws where the conditioning carries pictures for a model that is shown none.
void refuse_references(const Value& entry, const Value& model);

// In latent cells.
struct ReferenceSize {
  std::int64_t height = 0, width = 0;
};
// Where its first token lies: the first axis, then rows and columns, in tokens.
struct ReferencePlace {
  std::int64_t index = 0, row = 0, column = 0;
};
// `point`: of the picture that is drawn. Throws for a method that the samplers do not know.
std::vector<ReferencePlace> reference_places(const std::vector<ReferenceSize>& sizes,
                                             const ReferenceSize& point, const std::string& method,
                                             const ReferenceLayout& layout);

struct ReferenceTokens {
  Tensor tokens;     // (1|items, R, channels patch^2) f32, on the device of the call
  Tensor positions;  // (R, 3) f32
  // (1) f32 in host memory, or empty: where the text begins, and their timestep.
  Tensor text_start, timestep;
};
struct ReferenceTokenShapes {
  Shape tokens, positions;
  bool has_text_start = false, has_timestep = false;
};
// None where a picture that is told of is no latent.
std::optional<ReferenceTokenShapes> reference_shapes(const blocks::EntryShapes& entry,
                                                     const ReferenceLayout& layout,
                                                     std::int64_t items);
// Those among the text: an input of the model, by name.
struct PlacedInput {
  std::string name;
  heddle_dtype dtype;
  Shape shape;
  Tensor tensor = {};  // in a run
};
// None where a picture that is told of is no latent. Throws where there are more than the model is
// shown.
std::optional<std::vector<PlacedInput>> placed_shapes(const blocks::EntryShapes& entry,
                                                      const ReferenceLayout& layout,
                                                      std::int64_t items);
// Of an entry with reference_latents. Throws as well where one is no latent of the model's
// channels.
std::vector<PlacedInput> placed_references(Context& ctx, const Value& entry,
                                           const ReferenceLayout& layout,
                                           const LatentFormat& format, std::int64_t items);

// When a record of reference_latents or reference_sounds begins, counted from the text's end
// (minimax_latents.h). Throws where it does not tell.
double shown_time(const Value& record, const Value& entry);
// The same of clips: records of reference_latents that tell a time; none where one that is told of
// is no clip of the model's channels. The second throws there, and where one tells no time.
std::optional<ReferenceTokenShapes> clip_reference_shapes(const blocks::EntryShapes& entry,
                                                          const ReferenceLayout& layout);
ReferenceTokens clip_reference_tokens(Context& ctx, const Value& entry,
                                      const ReferenceLayout& layout, const LatentFormat& format);

// Of an entry with reference_latents. `grid`: the point's. Throws where one is no latent of the
// model's channels, and for videos where the model draws single pictures.
ReferenceTokens reference_tokens(Context& ctx, const Value& entry, const ReferenceLayout& layout,
                                 const LatentFormat& format, const Shape& grid, std::int64_t items);

}  // namespace heddle::samplers
