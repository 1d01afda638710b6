// plugins/encoders/language_sizes.h - what a decoder-only language model is besides its kind: sizes
// that its tensors have, and numbers that its config may give instead of those of the kind
// (language_model.h has their names). Functions of names, shapes and configs only; any thread. All
// throw HEDDLE_INVALID_ARGUMENT where tensors and config do not fit each other.
#pragma once

#include <array>

#include "language_kinds.h"

namespace heddle::encoders {

struct LanguageSizes {
  // turned: elements of a head that positions turn, the first.
  std::int64_t vocabulary, width, head, heads, kv_heads, turned;
  int layers;
};
LanguageSizes read_language_sizes(const Checkpoint& file, const LanguageNames& names,
                                  const LanguageKind& kind, const Value& config);

// Of layers whose attention is linear, by a gated delta rule. Channels: queries, keys and values.
struct DeltaSizes {
  std::int64_t pairs, heads, depth, width;  // heads of queries and keys, of values; their elements
  std::int64_t taps;                        // tokens that a convolution sees
  std::int64_t keys() const { return pairs * depth; }
  std::int64_t values() const { return heads * width; }
  std::int64_t channels() const { return 2 * keys() + values(); }
};
// Of such a layer.
DeltaSizes read_delta_sizes(const Checkpoint& file, const LanguageNames& names, int layer,
                            const Value& config);

// Pairs of a head by axis, where the model sees pictures; the kind's, or the config's
// mrope_section. turned: elements of a head that turn.
std::array<std::int64_t, 3> read_sections(const Checkpoint& file, const LanguageKind& kind,
                                          const Value& config, std::int64_t turned);

// How positions turn queries and keys: everywhere, or in the layers without a window.
struct LanguageRotation {
  double theta, factor;
  double near_theta;  // in layers with a window; 0: as the others
};
LanguageRotation read_rotation(const LanguageKind& kind, const Value& config);

// Whether rotated pairs are neighbours: a gguf file of llama's architecture has them beside each
// other.
bool pairs_are_neighbours(const Checkpoint& file, const LanguageNames& names);

}  // namespace heddle::encoders
