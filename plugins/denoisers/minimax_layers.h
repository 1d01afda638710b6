// plugins/denoisers/minimax_layers.h - what the graphs of a model of MiniMax H3 and of a model
// patch beside it have in common: layers with their modulations. Used while a model is built; one
// call's thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <heddle/model.hpp>

#include "minimax_blocks.h"
#include "minimax_names.h"
#include "minimax_sizes.h"
#include "plugins/blocks/slots.h"

namespace heddle::denoisers {

// What all layers read: vectors of times, the rotary table, and inputs of the model, most of them
// for their shapes.
struct MinimaxTold {
  Source video, sound;  // of MinimaxVector
  Source cos, sin;
  Source context, picture_rows, audio, references, sound_references;
};

class MinimaxLayers {
 public:
  // All arguments outlive this object.
  MinimaxLayers(const Checkpoint& file, const MinimaxNames& names, const MinimaxSizes& sizes,
                double eps, Blocks& graph)
      : file_(file), names_(names), s_(sizes), eps_(eps), graph_(graph) {}

  // Blocks "<path>.{video,text,sound}.modulation" and "<path>.block" of the tensors that begin with
  // `at`: "blocks.0.". more: what else is linked to a layer. Returns its stream.
  using More = std::function<void(Block& layer, blocks::Slots& slots)>;
  Source add(const std::string& path, const std::string& at, const Source& hidden,
             const MinimaxTold& told, const More& more = {}) const;

  // A matrix and its bias, of a module in the names of single files.
  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const;
  // Weights of the two norms of a layer.
  std::vector<Part> norms(const std::string& at) const;
  // What layers of the text have, too.
  template <class B>
  void fill_rest(blocks::Slots& slots, const std::string& at) const {
    slots.fill(B::q_norm, names_.one(at + "attn.q_norm.weight"), {s_.head});
    slots.fill(B::k_norm, names_.one(at + "attn.k_norm.weight"), {s_.head});
    slots.fill(B::proj, names_.one(at + "attn.out_proj.weight"), {s_.width, s_.heads * s_.head});
    slots.fill(B::up, names_.parts(at + "mlp.fc1.weight"), {2 * s_.mlp, s_.width});
    slots.fill(B::down, names_.one(at + "mlp.fc2.weight"), {s_.width, s_.mlp});
  }

 private:
  Source modulate(const std::string& path, const std::string& at, const Source& vector,
                  std::int64_t kind, std::int64_t rows) const;
  void check_rows(const std::string& tensor, std::int64_t rows) const;

  const Checkpoint& file_;
  const MinimaxNames& names_;
  const MinimaxSizes& s_;
  const double eps_;
  Blocks& graph_;
};

}  // namespace heddle::denoisers
