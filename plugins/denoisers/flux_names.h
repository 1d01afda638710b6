// plugins/denoisers/flux_names.h - where FLUX.1's, FLUX.2's and Chroma's weights are in a
// checkpoint, whoever wrote it. Two layouts are read: the original one
// ("double_blocks.0.img_attn.qkv.weight", single files, with or without a prefix) and that of
// diffusers ("transformer_blocks.0.attn.to_q.weight"). The rest of the family asks by the original
// names and gets parts: one tensor, rows of one, or several to be stacked. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "module_table.h"

namespace heddle::denoisers {

enum class FluxLayout { original, diffusers };

// What differs between the models.
struct FluxModules {
  std::span<const Module> top, in_double, in_single;
  // A single block's tensor of queries, keys, values and MLP; nullptr: diffusers has them apart.
  const char* fused_in_diffusers;
};

class FluxNames {
 public:
  // The layout and the prefix of the FLUX.1 weights in this file; nothing when there are none.
  static std::optional<FluxNames> find(const Checkpoint& file);
  // Those of a ControlNet of FLUX.1, which may have no single blocks.
  static std::optional<FluxNames> find_control(const Checkpoint& file);
  // Those of FLUX.2.
  static std::optional<FluxNames> find_second(const Checkpoint& file);
  // Those of Chroma, also where it draws pixels (Chroma Radiance).
  static std::optional<FluxNames> find_chroma(const Checkpoint& file);

  // A tensor of a module by its original name: ("img_in", "weight"),
  // ("final_layer.adaLN_modulation.1", "bias").
  std::vector<Part> top(std::string_view module, const char* kind) const;
  // The same inside a block; `fused` modules of single blocks are "linear1.qkv" and "linear1.mlp".
  std::vector<Part> in_double(int index, std::string_view module, const char* kind) const;
  std::vector<Part> in_single(int index, std::string_view module, const char* kind) const;

  // A tensor of a layer of Chroma's approximator: "in_layer", "out_layer" or "norm". No weight of a
  // norm has a bias.
  std::vector<Part> in_approximator(int layer, std::string_view module, const char* kind) const;
  int approximator_depth() const;
  // A tensor of the layer that makes the matrices of one of Radiance's networks of squares.
  std::vector<Part> in_network(int index, const char* kind) const;
  int network_depth() const;  // 0: it is not Radiance

  // The name of the one tensor that top(), in_double() or in_single() give.
  std::string one(const std::vector<Part>& parts) const { return parts.front().tensor; }

  // Every module by each of its names, whichever layout the file has:
  // "double_blocks.0.img_attn.qkv" and "transformer_blocks.0.attn.to_q" (a third of it), with the
  // rows that it has by that name. `kind` is "weight" or "bias".
  using Visit = std::function<void(const std::string& module, const char* kind,
                                   const std::vector<Part>& parts)>;
  void each_module(const Visit& visit) const;
  // Every tensor that the original file would have, with its rows here.
  using VisitTensor =
      std::function<void(const std::string& tensor, const std::vector<Part>& parts)>;
  void each_original(const VisitTensor& visit) const;

  // What is before the index of a block: "double_blocks.".
  std::string double_prefix() const;
  std::string single_prefix() const;
  const std::string& prefix() const { return prefix_; }

 private:
  FluxNames(const Checkpoint& file, const FluxModules& modules, FluxLayout layout,
            std::string prefix)
      : file_(file), modules_(&modules), layout_(layout), prefix_(std::move(prefix)) {}
  static std::optional<FluxNames> find_original_control(const Checkpoint& file);
  std::int64_t hidden() const;
  bool is_there(const std::vector<Part>& parts) const;
  std::int64_t row_count(const std::vector<Part>& parts) const;
  std::vector<Part> rows(const std::vector<Part>& parts, std::int64_t begin,
                         std::int64_t end) const;

  Checkpoint file_;
  const FluxModules* modules_;
  FluxLayout layout_;
  std::string prefix_;
};

// The names of a FLUX.2 model, as those who ask for the names of a family want them.
struct Flux2Names {
  static std::optional<FluxNames> find(const Checkpoint& file) {
    return FluxNames::find_second(file);
  }
};

struct ChromaNames {
  static std::optional<FluxNames> find(const Checkpoint& file) {
    return FluxNames::find_chroma(file);
  }
};

}  // namespace heddle::denoisers
