// plugins/denoisers/sd3_names.h - where the weights of Stable Diffusion 3 and 3.5 are in a
// checkpoint. Two layouts are read: the original one ("joint_blocks.0.x_block.attn.qkv.weight",
// single files, with or without a prefix) and that of diffusers
// ("transformer_blocks.0.attn.to_q.weight"). The family asks by the original names and gets parts,
// as flux_names.h says. Immutable, any thread.
#pragma once

#include <heddle/model.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/blocks/slots.h"

namespace heddle::denoisers {

class Sd3Names {
 public:
  // The layout and the prefix of the weights in this file; nothing when there are none.
  static std::optional<Sd3Names> find(const Checkpoint& file);

  // Those of a ControlNet, whose blocks may have no text and whose latent may be embedded by the
  // denoiser.
  static std::optional<Sd3Names> find_control(const Checkpoint& file);

  // A tensor of a module outside the blocks, by its original name: ("context_embedder", "weight").
  // Rows of "final_layer.linear" are given channel by channel of a token, as FluxFinal reads them;
  // files have them pixel by pixel.
  std::vector<Part> top(std::string_view module, const char* kind) const;
  // The same inside a block: (0, "x_block.attn.qkv", "weight").
  std::vector<Part> in_block(int index, std::string_view module, const char* kind) const;
  // The table of positions, (1, side^2, D).
  std::string positions() const;
  bool has(const std::vector<Part>& parts) const;
  int depth() const { return depth_; }
  const std::string& prefix() const { return prefix_; }

  // Every module by each of its names, whichever layout the file has, with the rows that it has by
  // that name. `kind` is "weight" or "bias".
  using Visit = std::function<void(const std::string& module, const char* kind,
                                   const std::vector<Part>& parts)>;
  void each_module(const Visit& visit) const;
  // Every tensor that the original file would have, with its rows here.
  using VisitTensor =
      std::function<void(const std::string& tensor, const std::vector<Part>& parts)>;
  void each_original(const VisitTensor& visit) const;

 private:
  enum class Layout { original, diffusers };
  Sd3Names(const Checkpoint& file, Layout layout, std::string prefix)
      : file_(file),
        layout_(layout),
        prefix_(std::move(prefix)),
        depth_(blocks::layer_count(file, block_prefix())) {}
  std::string block_prefix() const;
  std::vector<Part> as_stored(std::string_view module, const char* kind) const;
  std::vector<Part> rows(const std::vector<Part>& parts, std::int64_t part,
                         std::int64_t count) const;

  Checkpoint file_;
  Layout layout_;
  std::string prefix_;
  int depth_;
  bool is_control_ = false;
};

}  // namespace heddle::denoisers
