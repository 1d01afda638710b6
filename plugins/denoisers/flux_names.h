// plugins/denoisers/flux_names.h - where FLUX's weights are in a checkpoint, whoever wrote it.
// Two layouts are read: the original one ("double_blocks.0.img_attn.qkv.weight", single files, with
// or without a prefix) and that of diffusers ("transformer_blocks.0.attn.to_q.weight"). The rest of
// the family asks by the original names and gets parts: one tensor, rows of one, or several to be
// stacked. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::denoisers {

enum class FluxLayout { original, diffusers };

class FluxNames {
 public:
  // The layout and the prefix of the FLUX weights in this file; nothing when there are none.
  static std::optional<FluxNames> find(const Checkpoint& file);

  // A tensor of a module by its original name: ("img_in", "weight"),
  // ("final_layer.adaLN_modulation.1", "bias").
  std::vector<Part> top(std::string_view module, const char* kind) const;
  // The same inside a block; `fused` modules of single blocks are "linear1.qkv" and "linear1.mlp".
  std::vector<Part> in_double(int index, std::string_view module, const char* kind) const;
  std::vector<Part> in_single(int index, std::string_view module, const char* kind) const;

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
  FluxNames(const Checkpoint& file, FluxLayout layout, std::string prefix)
      : file_(file), layout_(layout), prefix_(std::move(prefix)) {}
  std::int64_t hidden() const;
  bool is_there(const std::vector<Part>& parts) const;
  std::int64_t row_count(const std::vector<Part>& parts) const;
  std::vector<Part> rows(const std::vector<Part>& parts, std::int64_t begin,
                         std::int64_t end) const;

  Checkpoint file_;
  FluxLayout layout_;
  std::string prefix_;
};

}  // namespace heddle::denoisers
