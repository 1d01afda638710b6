// Videos and pictures that a model of Wan looks at beside the one that it draws, as Bernini does
// (its inputs "sources" and "source_places"), as tokens of any size. As ComfyUI gives them. One
// call's thread.
#pragma once

#include "concat_input.h"

namespace heddle::samplers {

// Of a conditioning's entry: a list of latents (1|B, C, T, h, w), in the autoencoder's units. The
// number of a source is its place in it, from 1 on.
inline constexpr const char* kContextLatents = "context_latents";
// The model's inputs.
inline constexpr const char *kSources = "sources", *kSourcePlaces = "source_places";

struct SourceTokens {
  Tensor tokens;  // (1 or items, N, 4 C) f32, on the device of the call: of each token its cells
                  // row by row, of each their channels, in the model's units
  Tensor places;  // (N, 4) f32: frame, row, column and number of the source
};
// Throws where a source has other channels than the model reads. Sides that are no multiple of a
// token's are completed by their first cells, as ComfyUI does.
SourceTokens source_tokens_of(Context& ctx, const Value& entry, const Value& settings,
                              std::int64_t items);

struct SourceShapes {
  Shape tokens, places;
};
// None where a run throws.
std::optional<SourceShapes> source_shapes(const blocks::EntryShapes& entry, const Value& settings,
                                          std::int64_t items);

// Throws where an entry has sources, and the model does not look at any.
void refuse_sources(const Value& entry, const Value& model);

}  // namespace heddle::samplers
