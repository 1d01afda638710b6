// plugins/denoisers/zimage_layers.h - what the graph of a NextDiT (Z-Image, Lumina 2) and those of
// its patches are made of: a layer with its modulation, filled from a file. Used while a model is
// built; one call's thread.
#pragma once

#include <array>
#include <optional>
#include <string>

#include <heddle/model.hpp>

#include "plugins/blocks/slots.h"
#include "zimage_names.h"

namespace heddle::denoisers {

// What differs between the families.
struct NextDitKind {
  const char* family;
  const char* text_encoder;
  const char* modulation;  // of a layer
  bool activates;          // modulations read SiLU(vector)
  std::int64_t multiple;   // to which tokens are filled up
  std::int64_t first;      // where the text begins on the first axis
  double time_scale, theta, shift;
};

struct ZImageSizes {
  std::int64_t hidden, head, heads, kv_heads, mlp, context_width, vector_width, channels;
  int layers, image_refiners, text_refiners;
  std::array<std::int64_t, 3> axes;
  double eps;
};

// What a layer reads besides its tokens.
struct ZImageTold {
  Source vector, cos, sin;
  bool is_modulated = true;
  bool is_last = false;              // its tokens are the last rows of cos and sin, else the first
  std::optional<Source> point = {};  // where its tokens are the same at every step
};

class ZImageLayers {
 public:
  // All arguments outlive this object.
  ZImageLayers(const Checkpoint& file, const ZImageNames& names, const NextDitKind& kind,
               const ZImageSizes& sizes, Blocks& graph)
      : file_(file), names_(names), kind_(kind), s_(sizes), graph_(graph) {}

  // A linear layer of a block: matrix (out, in) and bias (out).
  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const;
  // path: of the blocks; at: what the tensors' names begin with.
  Source add(const std::string& path, const std::string& at, const Source& hidden,
             const ZImageTold& told) const;

 private:
  Source add_modulation(const std::string& path, const std::string& at,
                        const std::vector<Part>& norms, const Source& vector) const;

  const Checkpoint& file_;
  const ZImageNames& names_;
  const NextDitKind& kind_;
  const ZImageSizes& s_;
  Blocks& graph_;
};

}  // namespace heddle::denoisers
