// plugins/denoisers/wan_seen.h - what the layers of a graph of Wan look at besides the video's
// tokens: a text, and what CLIP saw of pictures. Used while a graph is built; any thread.
#pragma once

#include <heddle/model.hpp>

#include "plugins/blocks/slots.h"
#include "wan_names.h"
#include "wan_sizes.h"

namespace heddle::denoisers {

class WanSeen {
 public:
  // All outlive it.
  WanSeen(const Checkpoint& file, const WanNames& names, const WanSizes& sizes, double eps,
          Blocks& graph)
      : file_(file), names_(names), s_(sizes), eps_(eps), graph_(graph) {}

  // Their tokens, of the block at this path.
  Source text(const std::string& path, const Source& context) const;
  // module: of the tensors, with positions where the model has them for its first one.
  Source vision(const std::string& path, const Source& vision,
                const std::string& module = "img_emb") const;
  // Keys and values of a layer, whose tensors are `at` "blocks.0.cross_attn."; tail: of the names
  // of a picture's. x: the latent.
  Source keys(const std::string& path, const Source& seen, const std::string& at,
              const std::string& tail, const Source& x) const;

 private:
  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const;
  void vector_of(blocks::Slots& slots, const Weight& weight, const std::string& tensor,
                 std::int64_t width) const;

  const Checkpoint& file_;
  const WanNames& names_;
  const WanSizes& s_;
  const double eps_;
  Blocks& graph_;
};

}  // namespace heddle::denoisers
